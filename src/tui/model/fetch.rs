//! State of a read that takes a while and may be wanted again meanwhile, and how far it has come.

use crate::client::Error;

/// How far something that was asked for has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Load {
    /// The answer is not there yet.
    #[default]
    Loading,
    /// The answer.
    Ready,
    /// The error that kept it from being read.
    Failed(Error),
}

/// State of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fetch {
    /// Nothing is read.
    #[default]
    Idle,
    /// A read is under way.
    Running,
    /// A read is under way, and another one is wanted after it.
    Outdated,
}

impl Fetch {
    /// Begins a read; `false` where one is under way, after which it is read once more.
    pub fn begin(&mut self) -> bool {
        match self {
            Self::Idle => {
                *self = Self::Running;
                true
            }
            Self::Running | Self::Outdated => {
                *self = Self::Outdated;
                false
            }
        }
    }

    /// Ends the read; whether another one is wanted.
    pub fn end(&mut self) -> bool {
        std::mem::take(self) == Self::Outdated
    }
}
