//! Labels: a compare-and-set of their own, beside whatever works on the sandbox.

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::check_label;
use crate::domain::request::LabelRequest;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::SandboxManager;
use crate::manager::record::Guard;

impl SandboxManager {
    /// Sets and removes labels. What is as it should be already is nothing to do.
    pub async fn label(&self, request: LabelRequest) -> Result<SandboxRecord, Error> {
        for (key, value) in &request.set {
            check_label(key, value)?;
        }
        if let Some(twice) = request.set.keys().find(|key| request.remove.contains(*key)) {
            return Err(Error::invalid_input(
                "label",
                format!("{twice} is to be set and to be removed"),
            ));
        }
        let record = self.exactly(&request.id, request.revision).await?;
        if record.state == State::Destroyed {
            return Err(Error::new(Code::Conflict, format!("sandbox {} is destroyed", record.id)));
        }
        let same = request.set.iter().all(|(key, value)| record.labels.get(key) == Some(value))
            && !request.remove.iter().any(|key| record.labels.contains_key(key));
        if same {
            return Ok(record);
        }
        let data = serde_json::json!({"set": request.set, "removed": request.remove});
        let guard = Guard::Revision(request.revision);
        self.transition(
            &record.id,
            guard,
            vec![(EventKind::SandboxLabelled, data)],
            move |record| {
                record.labels.retain(|key, _| !request.remove.contains(key));
                record.labels.extend(request.set);
            },
        )
        .await
    }
}
