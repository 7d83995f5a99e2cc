//! Compose files of a grammar, hostile ones among them, and a judge of what an engine would be told of them. `it` renders
//! them and reads the files back; `lab` has the compose tools read them.

pub(crate) mod course;
pub(crate) mod grammar;
pub(crate) mod hostile;
pub(crate) mod judge;
pub(crate) mod seed;
pub(crate) mod shrink;
pub(crate) mod world;
