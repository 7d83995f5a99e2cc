//! `manifest.json` on the host (contract, section 6): enough to adopt the sandbox.
//!
//! The teardown script finds id and owner again with `grep`: one key a line, two blanks in front.

use serde::Serialize;

use crate::domain::error::Error;
use crate::domain::name::{OwnerId, SandboxId};
use crate::domain::time::Time;

#[derive(Serialize)]
struct Manifest<'a> {
    schema: u32,
    id: &'a SandboxId,
    owner: &'a OwnerId,
    profile: &'a str,
    created_at: Time,
    expires_at: Option<Time>,
    project: String,
}

/// The manifest's text.
pub(crate) fn text(
    id: &SandboxId,
    owner: &OwnerId,
    profile: &str,
    created_at: Time,
    expires_at: Option<Time>,
) -> Result<String, Error> {
    let manifest =
        Manifest { schema: 1, id, owner, profile, created_at, expires_at, project: id.project() };
    serde_json::to_string_pretty(&manifest)
        .map_err(|error| Error::internal("the manifest cannot be written").because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_teardown_looks_for_are_there() {
        let made = Time::from_unix(1_700_000_000);
        let text = text(&"a1b2c3d4".into(), &"0f".into(), "profile.x", made, None).unwrap();
        assert!(text.lines().any(|line| line == "  \"id\": \"a1b2c3d4\","), "{text}");
        assert!(text.lines().any(|line| line == "  \"owner\": \"0f\","), "{text}");
        assert!(text.contains("\"expires_at\": null"), "{text}");
    }
}
