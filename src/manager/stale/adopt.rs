//! Adoption: records of what hosts have and no record knows.

use crate::domain::adoption::{AdoptRequest, Adopted};
use crate::domain::error::{Code, Error};
use crate::manager::deps::Deps;

/// Makes records of what hosts have.
pub(crate) async fn adopt(_deps: &Deps, _request: &AdoptRequest) -> Result<Vec<Adopted>, Error> {
    Err(Error::new(Code::Unsupported, "not there yet"))
}
