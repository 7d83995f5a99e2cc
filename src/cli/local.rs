//! Commands on this machine's files alone.

use std::path::Path;

use futures_util::future::BoxFuture;

use crate::client::{Check, Error};

/// Work of a command without a client, on this machine's files.
pub struct Local<'a> {
    /// Checks one profile (or extension) file. Error: `invalid_profile`, one cause for each thing that is wrong.
    pub validate_profile: &'a dyn Fn(&Path) -> Result<(), Error>,
    /// Checks this installation, also where there can be no client; the argument is `--claim`. What is wrong is a
    /// check that failed, not an error.
    pub doctor: &'a dyn Fn(bool) -> BoxFuture<'a, Result<Vec<Check>, Error>>,
}
