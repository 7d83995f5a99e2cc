//! Form of a grant of credits.

use super::definition::{Asked, Definition, Notes};
use super::field::{Field, FieldKey, Fields};
use crate::client::GrantRequest;
use crate::domain::{Time, Usd};
use crate::tui::model::Role;

/// More credits.
#[derive(Debug, Clone)]
pub struct Grant {
    /// How many there are, where that is known.
    pub balance: Option<Usd>,
}

fn amount(fields: &Fields) -> Option<Usd> {
    fields.value(&FieldKey::Amount)?.parse().ok()
}

impl Definition for Grant {
    fn title(&self) -> String {
        "Grant credits".to_owned()
    }

    fn fields(&self) -> Vec<Field> {
        let above_zero = |value: &str| match value.parse::<Usd>()? {
            amount if amount > Usd::ZERO => Ok(()),
            _ => Err("above zero".to_owned()),
        };
        vec![
            Field::text(FieldKey::Amount, "", "in US dollars, such as 25 or 0.50")
                .checked(above_zero)
                .required(),
            Field::text(FieldKey::Note, "none", "for the history: why, or from where"),
        ]
    }

    fn notes(&self, fields: &Fields, _now: Time) -> Notes {
        let Some(balance) = self.balance else {
            return vec![(Role::Warn, "how many there are is not known".to_owned())];
        };
        let mut notes = vec![(Role::Plain, format!("balance  {balance}"))];
        if let Some(more) = amount(fields) {
            notes.push((Role::Accent, format!("then     {}", balance + more)));
        }
        notes
    }

    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        let usd = amount(fields).ok_or("type how many credits")?;
        Ok(Asked::Grant(GrantRequest { usd, note: fields.value(&FieldKey::Note) }))
    }
}
