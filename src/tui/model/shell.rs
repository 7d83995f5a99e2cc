//! Where in a sandbox a shell is opened.

use super::rows::Entry;
use crate::client::ShellRequest;
use crate::domain::sandbox::Service;

/// The overlay: the workspace first, then each service.
#[derive(Debug, Clone)]
pub struct ShellChoice {
    /// The sandbox's exact id.
    pub id: String,
    /// Name of its sandbox.
    pub title: String,
    /// The workspace on the host.
    pub workdir: String,
    pub services: Vec<Service>,
    /// The row under the cursor; 0 is the workspace.
    pub at: usize,
}

impl ShellChoice {
    /// The places of a row.
    pub fn of(entry: &Entry) -> Self {
        let record = &entry.record;
        Self {
            id: record.id.to_string(),
            title: record.title().to_owned(),
            workdir: record.workdir.clone().unwrap_or_default(),
            services: record.services.clone(),
            at: 0,
        }
    }

    /// Request, and the name of its shell.
    pub fn request(&self) -> (ShellRequest, String) {
        let service = self
            .at
            .checked_sub(1)
            .and_then(|at| self.services.get(at))
            .map(|service| service.name.clone());
        let title = match &service {
            Some(service) => format!("{} {service}", self.title),
            None => self.title.clone(),
        };
        (ShellRequest { id: self.id.clone(), service }, title)
    }
}
