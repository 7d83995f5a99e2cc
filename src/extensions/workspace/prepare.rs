//! The one call that makes a sandbox's directory and says what the host is.

use std::os::unix::ffi::OsStrExt as _;

use crate::domain::error::Error;
use crate::domain::extension::{ProvisionRequest, Provisioned};
use crate::domain::facts::{Engine, HostIdentity, Runtime};
use crate::domain::profile::Bytes;
use crate::domain::reporter::Learnt;
use crate::extensions::workspace::script_output::{OutputBuffer, ScriptOutput};
use crate::extensions::workspace::{
    Recorded, Steps, configured_root, expected, failed, manifest, repo, step, workspace,
};
use crate::transport::probe::{engine_word, parse_runtimes};
use crate::transport::shell::quote::quote;
use crate::transport::transfer::{self, Plan};
use crate::transport::{Command, Source, Transport};

macro_rules! prepare_sh {
    () => {
        concat!(
            include_str!("../../transport/scripts/runtime.sh"),
            include_str!("scripts/says.sh"),
            include_str!("scripts/place.sh"),
            include_str!("scripts/belonging.sh"),
            include_str!("scripts/prepare.sh")
        )
    };
}

const PREPARE_SH: &str = concat!("exec 5>&1\n", prepare_sh!());
const FILL_SH: &str = concat!(
    "sbx_prepare() {\n",
    prepare_sh!(),
    "}\n",
    include_str!("scripts/fill.sh"),
    include_str!("../../transport/scripts/extract.sh")
);

const ROOT_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/place.sh"),
    include_str!("scripts/root.sh")
);

/// Wants of the host.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// Whether a compose runtime is looked for.
    pub(crate) runtime: Detect<'a>,
    /// The root is somebody else's work: it must be there already, and this says what to do when it is not.
    pub(crate) given_root: Option<&'a str>,
    /// Room that must stay free on its file system after the transfer.
    pub(crate) min_free: Bytes,
    /// Identity that the host proved, where something is taken from it.
    pub(crate) identity: Option<&'a HostIdentity>,
}

/// How a compose runtime is looked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Detect<'a> {
    /// Not at all.
    #[default]
    No,
    /// Not either, but whether what was found before would hold: the host's fingerprint, with the words of a compose command.
    Fingerprint(&'a [String]),
    /// The first that works, or the only one that may be used, by its words.
    First(&'a [String]),
    /// Runtime that was found a moment ago: its engine is asked for its identity, the tool for nothing.
    Known(&'a Runtime),
}

/// Findings of the prepare call, and what it made.
pub(crate) struct Prepared {
    /// The root, absolute and without links.
    pub(crate) root: String,
    /// The sandbox's directory.
    pub(crate) workdir: String,
    /// Identity that the host proved.
    pub(crate) identity: HostIdentity,
    /// The compose runtime, where one was asked for and works; a known one only where its engine is the same.
    pub(crate) runtime: Option<Runtime>,
    /// Why runtimes do not work, a sentence each.
    pub(crate) findings: Vec<String>,
    /// The host's fingerprint, where it was asked for and could be made.
    pub(crate) fingerprint: Option<String>,
    /// Whether rsync can be used.
    pub(crate) rsync: bool,
    /// Whether its workspace was filled, too.
    pub(crate) filled: bool,
    /// Whether nothing of another one can have come in its way since: the engine was asked a moment ago.
    pub(crate) clear: bool,
    /// The host's counter of this installation, where it is not behind.
    pub(crate) counter_ahead: Option<u64>,
}

impl Prepared {
    /// For the record, at once.
    pub(crate) fn learnt(&self) -> Learnt {
        Learnt {
            workdir: self.workdir.clone(),
            identity: self.identity.clone(),
            rewrites: Vec::new(),
        }
    }

    /// Fills its workspace with the repository, where that did not come with the prepare call.
    pub(crate) async fn fill(
        &self,
        request: &ProvisionRequest,
        transport: &dyn Transport,
        plan: &Plan,
        steps: &Steps<'_>,
    ) -> Result<(), Error> {
        if self.filled {
            return Ok(());
        }
        let workspace = workspace(&self.workdir);
        repo::send(request, transport, plan, (&workspace, self.rsync), steps).await
    }

    /// With another runtime than the one that was known.
    pub(crate) fn on(self, runtime: Runtime) -> Self {
        let identity = identity(&self.identity.machine_id, Some(&runtime));
        Self { identity, runtime: Some(runtime), clear: false, ..self }
    }

    /// Answer of `provision` when nothing but the workspace was made.
    pub(crate) fn provisioned(&self) -> Provisioned {
        Provisioned {
            handle: serde_json::Value::Null,
            workdir: self.workdir.clone(),
            identity: self.identity.clone(),
            rewrites: Vec::new(),
            report: None,
            counter_ahead: self.counter_ahead,
            start_output: None,
            ready: None,
        }
    }
}

/// Makes the directory with its manifest and raises the owner's counter on the host. A small tree comes with the same call. What is
/// learnt of the host is told as soon as the directory is there, also where the rest fails.
///
/// Errors: `untouched` ones where the host refused before anything was made.
pub(crate) async fn prepare(
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: Option<&Plan>,
    wanted: Wanted<'_>,
    steps: &Steps<'_>,
) -> Result<Prepared, Error> {
    let owner = &request.owner;
    let text = manifest::of_request(request)?;
    let spec = transport.spec();
    let root = configured_root(&request.profile).unwrap_or(&spec.workspace_root);
    let engine = match wanted.runtime {
        Detect::Known(known) => engine_word(known).to_owned(),
        Detect::No | Detect::Fingerprint(_) | Detect::First(_) => String::new(),
    };
    let command = Command::script(PREPARE_SH)
        .arg(root)
        .arg(root_word(wanted.given_root))
        .arg(request.id.as_str())
        .arg(owner.owner.as_str())
        .arg(owner.counter.to_string())
        .arg(&owner.machine_id)
        .arg(text)
        .arg(plan.map_or(0, |plan| plan.bytes).to_string())
        .arg(kib(wanted.min_free))
        .arg(expected(wanted.identity, &request.roots, Recorded::No))
        .arg(match wanted.runtime {
            Detect::No => "no",
            Detect::Fingerprint(_) => "fingerprint",
            Detect::First(_) => "first",
            Detect::Known(_) => "engine",
        })
        .args(match wanted.runtime {
            Detect::No => &[],
            Detect::Fingerprint(words) | Detect::First(words) => words,
            Detect::Known(_) => std::slice::from_ref(&engine),
        });
    let (output, filled) = match plan.filter(|plan| repo::is_small(plan)) {
        Some(plan) => {
            let mut words = Vec::new();
            for word in command.words() {
                quote(word.as_bytes(), &mut words)?;
                words.push(b' ');
            }
            let fill = Command::script(FILL_SH).arg(words.len().to_string());
            let mut heard = OutputBuffer::default();
            let mut on_line = |source: Source, line: &[u8]| {
                heard.line(source, line);
                if source == Source::Stdout
                    && line == PREPARED.as_bytes()
                    && let Some(made) = read(request, wanted, heard.text())
                {
                    steps.reporter.learnt(&made.learnt());
                }
            };
            let fed = (&fill, words.as_slice());
            let (output, filled) =
                repo::feed(request, transport, plan, fed, steps, &mut on_line).await?;
            (output, Some(filled))
        }
        None => (step(transport, "prepare", &command).await?, None),
    };
    let text = output.text();
    let said = ScriptOutput::read(&text);
    if let Some(root) = said.marked_root() {
        steps.reporter.found_root(&root);
    }
    // The script says these before it makes the directory, or after it took a half-made one away.
    check(&said, transport, root, wanted.given_root).map_err(Error::untouched)?;
    let Some(made) = read(request, wanted, &text) else {
        return Err(failed(
            "prepare",
            format!("the workspace on {} could not be prepared", spec.name),
            &output,
        ));
    };
    steps.reporter.learnt(&made.learnt());
    let filled = filled.transpose()?.is_some();
    Ok(Prepared { filled, clear: filled, ..made })
}

/// Looks at the root in which [`prepare`] would make the directory and put so many bytes.
///
/// Errors: what [`prepare`] refuses there.
pub(crate) async fn check_place(
    request: &ProvisionRequest,
    bytes: u64,
    transport: &dyn Transport,
    wanted: Wanted<'_>,
) -> Result<(), Error> {
    let given_root = wanted.given_root;
    let root = configured_root(&request.profile).unwrap_or(&transport.spec().workspace_root);
    let command = Command::script(ROOT_SH)
        .arg(root)
        .arg(request.owner.owner.as_str())
        .arg(root_word(given_root))
        .arg(expected(None, &request.roots, Recorded::No))
        .arg(bytes.to_string())
        .arg(kib(wanted.min_free));
    let output = step(transport, "prepare", &command).await?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    check(&said, transport, root, given_root)?;
    if said.value("fit") == Some("yes") {
        return Ok(());
    }
    let message = format!("the workspace root on {} could not be looked at", request.host);
    Err(failed("prepare", message, &output))
}

/// How the scripts take a size.
fn kib(size: Bytes) -> String {
    size.get().div_ceil(1024).to_string()
}

/// How the scripts take whether a root may be made.
fn root_word(given_root: Option<&str>) -> &'static str {
    if given_root.is_some() { "given" } else { "made" }
}

fn check(
    said: &ScriptOutput<'_>,
    transport: &dyn Transport,
    root: &str,
    given_root: Option<&str>,
) -> Result<(), Error> {
    said.check("prepare", transport, root).map_err(|error| {
        match given_root.filter(|_| said.value("error") == Some("root")) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })
}

/// Last line of a prepare call that made the directory.
const PREPARED: &str = "prepared=yes";

/// Reads what a prepare call said; none where it did not make the directory.
fn read(request: &ProvisionRequest, wanted: Wanted<'_>, text: &str) -> Option<Prepared> {
    let said = ScriptOutput::read(text);
    let root = said.text("root").filter(|_| said.value("prepared") == Some("yes"))?;
    let report = parse_runtimes(text);
    let runtime = match wanted.runtime {
        Detect::Known(known) => {
            report.engines.iter().any(|engine| is_engine_of(engine, known)).then(|| known.clone())
        }
        Detect::No | Detect::Fingerprint(_) | Detect::First(_) => {
            report.runtimes.into_iter().next()
        }
    };
    Some(Prepared {
        workdir: format!("{}/{}", root.trim_end_matches('/'), request.id.project()),
        identity: identity(said.value("machine").unwrap_or_default(), runtime.as_ref()),
        root,
        runtime,
        findings: report.findings,
        fingerprint: report.fingerprint,
        rsync: said.value("rsync") == Some("yes") && transfer::rsync_here(),
        filled: false,
        clear: false,
        counter_ahead: said.value("counter").and_then(|counter| counter.parse().ok()),
    })
}

fn identity(machine_id: &str, runtime: Option<&Runtime>) -> HostIdentity {
    HostIdentity {
        machine_id: machine_id.to_owned(),
        engine: runtime.map(|runtime| runtime.engine.clone()),
        engine_id: runtime.and_then(|runtime| runtime.engine_id.clone()),
    }
}

fn is_engine_of(engine: &Engine, runtime: &Runtime) -> bool {
    (&engine.program, &engine.id) == (&runtime.engine, &runtime.engine_id)
        && (engine.version.is_none() || engine.version == runtime.engine_version)
}
