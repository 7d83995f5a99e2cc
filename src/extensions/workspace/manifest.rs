//! `manifest.json` on the host (contract, section 6): enough to adopt the sandbox. Written by the prepare call, and anew whenever
//! the record has something else to say there.
//!
//! The teardown script finds id and owner again with `grep`: one key a line, two blanks in front. The record and the profile
//! stand on one line each: whoever lists hosts reads them all.

use serde::Serialize;

use crate::domain::error::Error;
use crate::domain::extension::{ProvisionRequest, Target};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::sandbox_manifest::{SCHEMA, SandboxManifest};
use crate::extensions::workspace::script_output::ScriptOutput;
use crate::extensions::workspace::{exec, expected_of, owners, root, step};
use crate::transport::{Command, Transport};

const MANIFEST_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/place.sh"),
    include_str!("scripts/stand.sh"),
    include_str!("scripts/manifest.sh")
);

/// The longest manifest that is written, in bytes: it travels as one argument, of which Linux takes 128 KiB.
const LONGEST: usize = 96 * 1024;

/// Text of the manifest of what is about to be made.
pub(crate) fn of_request(request: &ProvisionRequest) -> Result<String, Error> {
    text(&manifest_of(request))
}

/// Manifest of what is about to be made.
pub(crate) fn manifest_of(request: &ProvisionRequest) -> SandboxManifest {
    let head = SandboxManifest {
        schema: SCHEMA,
        id: request.id.clone(),
        owner: request.owner.owner.clone(),
        profile: request.profile.id.to_string(),
        created_at: request.created_at,
        expires_at: request.expires_at,
        project: request.id.project(),
        protect: request.sandbox.as_ref().is_some_and(|record| record.is_protected()),
        sandbox: None,
        pinned_profile: None,
    };
    let Some(record) = &request.sandbox else { return head };
    let whole = SandboxManifest::of(record, &request.profile);
    SandboxManifest { sandbox: whole.sandbox, pinned_profile: whole.pinned_profile, ..head }
}

/// Writes it anew from the record, once the place is proved to be the sandbox's, and the target's stamp, if it has one, where
/// the host keeps our counter.
pub(crate) async fn write(
    transport: &dyn Transport,
    target: &Target,
    record: &SandboxRecord,
) -> Result<(), Error> {
    let text = text(&SandboxManifest::of(record, &target.profile))?;
    let stamp = target.stamp.as_ref();
    let root = root(target, &transport.spec().workspace_root);
    let command = Command::script(MANIFEST_SH)
        .arg(root)
        .arg(target.id.as_str())
        .arg(owners(target))
        .arg(expected_of(target))
        .arg(text)
        .arg(stamp.map_or_else(String::new, |ours| format!("{} {}", ours.owner, ours.counter)))
        .arg(stamp.map_or("", |ours| ours.machine_id.as_str()));
    let output = step(transport, "manifest", &command).await?;
    exec::stands(target, transport, root, "manifest", &ScriptOutput::read(&output.text()))
}

/// Its text. One that became too long to be sent has only what tells whose it is, until when, and whether it is protected.
fn text(manifest: &SandboxManifest) -> Result<String, Error> {
    let head = SandboxManifest { sandbox: None, pinned_profile: None, ..manifest.clone() };
    let mut text = serde_json::to_string_pretty(&head).map_err(unfit)?;
    let whole = [
        ("sandbox", manifest.sandbox.as_ref().map(on_one_line)),
        ("recipe", manifest.pinned_profile.as_ref().map(on_one_line)),
    ];
    let mut lines = String::new();
    for (key, value) in whole {
        if let Some(value) = value {
            lines = format!("{lines},\n  \"{key}\": {}", value?);
        }
    }
    if text.len() + lines.len() > LONGEST {
        tracing::warn!(sandbox = %manifest.id, bytes = lines.len(), "its record is too long for its manifest");
    } else {
        text.truncate(text.trim_end_matches(['}', '\n']).len());
        text.push_str(&lines);
        text.push_str("\n}");
    }
    Ok(text)
}

/// JSON without what is null or empty in the record, as its file has it.
fn on_one_line(value: &impl Serialize) -> Result<String, Error> {
    let mut value = serde_json::to_value(value).map_err(unfit)?;
    if let Some(fields) = value.as_object_mut() {
        // An empty handle says something: that there is one.
        fields.retain(|key, value| !value.is_null() || key == "handle");
    }
    serde_json::to_string(&value).map_err(unfit)
}

fn unfit(error: serde_json::Error) -> Error {
    Error::internal("the manifest cannot be written").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Time;

    fn manifest() -> SandboxManifest {
        SandboxManifest {
            schema: SCHEMA,
            id: "a1b2c3d4".into(),
            owner: "0f".into(),
            profile: "profile.x".to_owned(),
            created_at: Time::from_unix(1_700_000_000),
            expires_at: None,
            project: "sbx-a1b2c3d4".to_owned(),
            protect: false,
            sandbox: None,
            pinned_profile: None,
        }
    }

    #[test]
    fn the_lines_that_teardown_looks_for_are_there() {
        let text = text(&manifest()).unwrap();
        assert!(text.lines().any(|line| line == "  \"id\": \"a1b2c3d4\","), "{text}");
        assert!(text.lines().any(|line| line == "  \"owner\": \"0f\","), "{text}");
        assert!(text.contains("\"expires_at\": null"), "{text}");
        assert_eq!(serde_json::from_str::<SandboxManifest>(&text).unwrap(), manifest());
    }

    #[test]
    fn a_profile_is_on_one_line_behind_the_head_and_read_again() {
        let profile = crate::domain::profile::Profile::unknown(
            "profile.x".into(),
            "1.0.0",
            "ext.compose-ssh".into(),
        );
        let whole = SandboxManifest { pinned_profile: Some(Box::new(profile)), ..manifest() };
        let text = text(&whole).unwrap();
        assert_eq!(text.lines().count(), 10, "{text}");
        assert!(text.lines().any(|line| line == "  \"owner\": \"0f\","), "{text}");
        assert_eq!(serde_json::from_str::<SandboxManifest>(&text).unwrap(), whole);
    }

    #[test]
    fn one_that_is_too_long_says_still_that_it_is_protected() {
        let mut profile = crate::domain::profile::Profile::unknown(
            "profile.x".into(),
            "1.0.0",
            "ext.compose-ssh".into(),
        );
        profile.summary = "x".repeat(LONGEST);
        let long = SandboxManifest {
            protect: true,
            pinned_profile: Some(Box::new(profile)),
            ..manifest()
        };
        let read: SandboxManifest = serde_json::from_str(&text(&long).unwrap()).unwrap();
        assert_eq!(read, SandboxManifest { protect: true, ..manifest() });
        assert!(read.is_protected());
    }
}
