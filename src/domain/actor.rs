//! Actors: a human, an agent or an automation that asks for something.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::{Code, Error};
use crate::domain::words::string_enum;

string_enum! {
    /// Kind of actor.
    pub enum ActorType {
        /// A human.
        Adm = "adm",
        /// An agent.
        Agt = "agt",
        /// An automation.
        Atm = "atm",
    }
}

/// Actor: a person, agent or automation that causes something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Actor {
    /// Human, agent or automation.
    #[serde(rename = "type")]
    pub kind: ActorType,
    /// Name.
    pub name: String,
}

impl Actor {
    /// Actor of looks at hosts for which nobody asked: what is seen there is nobody's doing.
    pub fn observer() -> Self {
        Self { kind: ActorType::Atm, name: "sandboxer".to_owned() }
    }

    /// Reads `adm:NAME`, `agt:NAME` or `atm:NAME`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::new(Code::Usage, "an actor is written adm:NAME, agt:NAME or atm:NAME")
                .hint("adm is a human, agt an agent, atm an automation")
                .detail("field", "actor")
        };
        let (kind, name) = text.split_once(':').ok_or_else(wrong)?;
        let kind = ActorType::from_word(kind);
        let printable = !name.is_empty()
            && name.len() <= 63
            && !name.chars().any(|c| c.is_control() || c == ':');
        if matches!(kind, ActorType::Other(_)) || !printable {
            return Err(wrong());
        }
        Ok(Self { kind, name: name.to_owned() })
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}
