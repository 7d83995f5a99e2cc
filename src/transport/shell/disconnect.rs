//! The ways in which a command does not come to its own end.

use std::io;
use std::time::Duration;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::host::HostSpec;
use crate::transport::shell::channel::BrokenChannel;

pub(crate) fn late(spec: &HostSpec, deadline: Duration) -> Error {
    Error::new(
        Code::Timeout,
        format!("a command on {} did not end within {:?}", spec.name, deadline),
    )
    .detail("host", spec.name.as_str())
}

pub(crate) fn stalled(spec: &HostSpec, idle: Duration) -> Error {
    Error::new(Code::Timeout, format!("the transfer to {} stood still for {:?}", spec.name, idle))
        .detail("host", spec.name.as_str())
}

/// A source that could not be read to its end.
pub(crate) fn unread(error: io::Error) -> Error {
    Error::new(Code::OperationFailed, "what was to be transferred could not be read")
        .because(error)
        .of_kind(Kind::SourceUnread)
}

/// A shell that was ended from outside while the machine is well.
pub(crate) fn killed(spec: &HostSpec, broken: BrokenChannel) -> Error {
    let message = if broken.begun {
        format!("a command on {} was killed together with its shell", spec.name)
    } else {
        format!("the account on {} gave no usable shell", spec.name)
    };
    let failure = Error::new(Code::OperationFailed, message).detail("host", spec.name.as_str());
    match broken.error {
        _ if !broken.words.is_empty() => failure.because(broken.words),
        Some(error) => failure.because(error),
        None => failure,
    }
}
