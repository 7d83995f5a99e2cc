//! Undo: what is kept of a sandbox before it is removed, and the way back.

use crate::domain::error::{Code, Error};
use crate::domain::request::Started;
use crate::domain::undo::UndoRequest;
use crate::manager::deps::Deps;

/// Starts to bring a removed sandbox back and returns at once.
pub(crate) async fn undo(_deps: &Deps, _request: &UndoRequest) -> Result<Started, Error> {
    Err(Error::new(Code::Unsupported, "not there yet"))
}
