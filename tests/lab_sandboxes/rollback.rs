//! What fails or is broken off leaves evidence on the record and nothing on the host.
