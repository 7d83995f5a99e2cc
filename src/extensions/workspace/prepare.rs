//! The one call that makes a sandbox's directory and says what the host is.

use crate::domain::extension::{ExtensionError, Learnt, ProvisionRequest, Provisioned};
use crate::domain::facts::{HostIdentity, Runtime};
use crate::extensions::workspace::said::Said;
use crate::extensions::workspace::{configured_root, failed, manifest, step};
use crate::transport::probe::parse_runtimes;
use crate::transport::transfer::{self, Plan};
use crate::transport::{Command, Transport};

const PREPARE_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/prepare.sh")
);

/// What is asked beyond the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted<'a> {
    /// Nothing.
    Directory,
    /// A compose runtime: the one of these words, or the first that works.
    Runtime(&'a [String]),
}

/// What the prepare call found and made.
pub(crate) struct Prepared {
    /// The root, absolute and without links.
    pub(crate) root: String,
    /// The sandbox's directory.
    pub(crate) workdir: String,
    /// What the host proved to be.
    pub(crate) identity: HostIdentity,
    /// The compose runtime, where one was asked for and works.
    pub(crate) runtime: Option<Runtime>,
    /// Why runtimes do not work, a sentence each.
    pub(crate) findings: Vec<String>,
    /// Whether rsync can be used.
    pub(crate) rsync: bool,
    /// The host's counter of this installation, where it is not behind.
    pub(crate) counter_ahead: Option<u64>,
}

impl Prepared {
    /// For the record, at once.
    pub(crate) fn learnt(&self) -> Learnt {
        Learnt { workdir: self.workdir.clone(), identity: self.identity.clone() }
    }

    /// What `provision` answers when nothing but the workspace was made.
    pub(crate) fn provisioned(&self) -> Provisioned {
        Provisioned {
            handle: serde_json::Value::Null,
            workdir: self.workdir.clone(),
            identity: self.identity.clone(),
            rewrites: Vec::new(),
            facts: None,
            certificate: None,
            counter_ahead: self.counter_ahead,
        }
    }
}

/// Makes the directory with its manifest and raises the owner's counter on the host.
///
/// Errors: `untouched` ones where the host refused before anything was made.
pub(crate) async fn prepare(
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: Option<&Plan>,
    wanted: Wanted<'_>,
) -> Result<Prepared, ExtensionError> {
    let owner = &request.owner;
    let text =
        manifest::text(&request.id, &owner.owner, request.profile.id.as_str(), request.created_at, request.expires_at)?;
    let spec = transport.spec();
    let (how, words) = match wanted {
        Wanted::Directory => ("no", &[][..]),
        Wanted::Runtime(words) => ("first", words),
    };
    let command = Command::script(PREPARE_SH)
        .arg(configured_root(&request.profile).unwrap_or(&spec.workspace_root))
        .arg(request.id.as_str())
        .arg(owner.owner.as_str())
        .arg(owner.counter.to_string())
        .arg(&owner.machine_id)
        .arg(text)
        .arg(plan.map_or(0, |plan| plan.bytes).to_string())
        .arg(how)
        .args(words);
    let output = step(transport, "prepare", &command).await?;
    let text = output.text();
    let said = Said::read(&text);
    // The script says these before it makes the directory, or after it took a half-made one away.
    said.check("prepare", transport).map_err(|error| ExtensionError { untouched: true, ..error })?;
    let root = said.text("root").filter(|_| said.value("prepared") == Some("yes"));
    let Some(root) = root else {
        return Err(failed("prepare", format!("the workspace on {} could not be prepared", spec.name), &output));
    };
    let report = parse_runtimes(&text);
    let runtime = report.runtimes.into_iter().next();
    Ok(Prepared {
        workdir: format!("{}/{}", root.trim_end_matches('/'), request.id.project()),
        identity: HostIdentity {
            machine_id: said.value("machine").unwrap_or_default().to_owned(),
            engine: runtime.as_ref().map(|runtime| runtime.engine.clone()),
            engine_id: runtime.as_ref().and_then(|runtime| runtime.engine_id.clone()),
        },
        root,
        runtime,
        findings: report.findings,
        rsync: said.value("rsync") == Some("yes") && transfer::rsync_here(),
        counter_ahead: said.value("counter").and_then(|counter| counter.parse().ok()),
    })
}
