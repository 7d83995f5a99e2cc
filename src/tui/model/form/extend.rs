//! Form of a later deadline.

use std::sync::Arc;

use super::definition::{Asked, Definition, Notes};
use super::field::{Field, FieldKey, Fields, check_seconds};
use crate::client::ExtendRequest;
use crate::domain::Time;
use crate::domain::profile::Seconds;
use crate::domain::sandbox::SandboxRecord;
use crate::tui::model::{Role, age};

/// How much later, where nothing else is typed.
const BY: &str = "1h";

/// A later deadline of this sandbox.
#[derive(Debug, Clone)]
pub struct Extend {
    /// Record as the operator saw it.
    pub record: Arc<SandboxRecord>,
}

fn by(fields: &Fields) -> Option<Seconds> {
    fields.value(&FieldKey::By).as_deref().unwrap_or(BY).parse().ok()
}

impl Definition for Extend {
    fn title(&self) -> String {
        format!("Extend {}", self.record.title())
    }

    fn fields(&self) -> Vec<Field> {
        vec![Field::text(FieldKey::By, BY, "such as 30m or 2h").checked(check_seconds)]
    }

    fn notes(&self, fields: &Fields, now: Time) -> Notes {
        let left = |at: Time| format!("{at}, in {}", age(at.since(now).as_secs()));
        let Some(was) = self.record.expires_at else {
            return vec![(Role::Dim, "it has no deadline".to_owned())];
        };
        let mut notes = vec![(Role::Plain, format!("ends   {}", left(was)))];
        if let Some(by) = by(fields) {
            let then = was.plus_seconds(by.get());
            notes.push((Role::Accent, format!("then   {}", left(then))));
            if let Some(max) = self.record.max_expires_at {
                let role = if then > max { Role::Bad } else { Role::Dim };
                notes.push((role, format!("latest {}", left(max))));
            }
        }
        notes
    }

    /// If the deadline is the one that was shown.
    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        Ok(Asked::Extend(ExtendRequest {
            id: self.record.id.to_string(),
            expires_at: self.record.expires_at,
            by_s: by(fields).map(Seconds::get),
            ..ExtendRequest::default()
        }))
    }
}
