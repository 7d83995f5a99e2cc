//! Bad days of a reap.
