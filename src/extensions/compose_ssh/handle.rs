//! Handle by which this extension finds a sandbox again, beyond its id.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::facts::Runtime;
use crate::domain::sandbox::Handle;

/// A service that should be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Expected {
    pub(super) name: String,
    /// How many containers.
    pub(super) replicas: u32,
    /// The restart policy.
    pub(super) restart: String,
    /// Whether another service waits for it to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) one_shot: bool,
    /// The services that are started before it, and whether it waits until they are healthy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) needs: BTreeMap<String, bool>,
}

/// The handle's content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stack {
    /// The runtime that started it; none for a workspace alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) runtime: Option<Runtime>,
    /// Services that should run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) services: Vec<Expected>,
    /// Images that were built for it, removed with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) built: Vec<String>,
}

impl Stack {
    pub(super) fn to_handle(&self) -> Result<Handle, Error> {
        serde_json::to_value(self)
            .map_err(|error| Error::internal("the handle cannot be written").because(error))
    }

    pub(super) fn from_handle(handle: Option<&Handle>) -> Option<Self> {
        handle.and_then(|handle| serde_json::from_value(handle.clone()).ok())
    }
}
