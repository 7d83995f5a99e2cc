//! Import of what the earlier Python tool kept in this data directory.

use crate::domain::adoption::{Adopted, ImportRequest};
use crate::domain::error::{Code, Error};
use crate::manager::deps::Deps;

/// Takes the earlier tool's records over.
pub(crate) async fn import_earlier(
    _deps: &Deps,
    _request: &ImportRequest,
) -> Result<Vec<Adopted>, Error> {
    Err(Error::new(Code::Unsupported, "not there yet"))
}
