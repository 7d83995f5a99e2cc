//! Forms of the verbs on snapshots: take one, restore one, add a patch, roll patches out. What each would do stands below
//! its fields.

use std::sync::Arc;

use super::Role;
use super::fields::{Choice, Field, FieldKey, Fields};
use super::job::JobId;
use super::snapshots::caveat;
use super::targets::{SnapshotTarget, Target};
use crate::client::{
    Error, ExtendRequest, GrantRequest, PatchRequest, RestoreRequest, RolloutRequest, SnapshotDiff,
    SnapshotRequest,
};
use crate::domain::figures::{age, bytes};
use crate::domain::lineage::{BasedOn, SnapshotView};
use crate::domain::name::SandboxId;
use crate::domain::patch::RUN_IN_WORKSPACE;
use crate::domain::profile::Seconds;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::{Time, Usd};
use crate::present::lineage::is_blocked;
use crate::present::many;

/// How many differences are listed.
const CHANGES: usize = 200;

/// How much later a deadline is, where nothing else is typed.
const EXTENDED_BY: &str = "1h";

/// What a form is for.
#[derive(Debug, Clone)]
pub enum ActionFormKind {
    /// A snapshot of each of these.
    Snapshot(Vec<Target>),
    /// A new sandbox from this one.
    Restore(Box<SnapshotTarget>, Comparison),
    /// A patch on this one, from a file or from the editor.
    AddPatch(Arc<SnapshotView>, Script),
    /// The patches of this one onto the sandboxes based on it; those of these that are protected are passed over.
    RollOut(Arc<SnapshotView>, Vec<SandboxId>),
    /// A later deadline of this one.
    Extend(Arc<SandboxRecord>),
    /// More credits; how many there are, where that is known.
    Grant(Option<Usd>),
}

/// Where a new patch's script comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// From the file that a field names.
    File,
    /// As it was written in the editor.
    Written(String),
}

/// What differs between a snapshot and what it was taken of.
#[derive(Debug, Clone, PartialEq)]
pub enum Comparison {
    /// It was asked for.
    Asking,
    /// The answer.
    Known(Box<SnapshotDiff>),
    /// It could not be found out.
    Failed(Error),
}

/// The form.
#[derive(Debug, Clone)]
pub struct ActionForm {
    /// What it is for.
    pub about: ActionFormKind,
    /// Its number, by which a late answer is recognised.
    pub number: u64,
    /// The fields.
    pub fields: Fields,
    /// Whether it was asked for and not answered.
    pub submitting: bool,
    /// The job that it was asked in.
    pub job: Option<JobId>,
    /// An error that belongs to no field.
    pub error: Option<Error>,
    /// The first line on the screen of what stands below the fields.
    pub offset: usize,
    /// Whether it was on the screen.
    pub drawn: bool,
}

/// What each mode promises.
const MODES: [(&str, &str); 3] = [
    ("pause", "containers stand still while it is read"),
    ("live", "nothing stops; files may change while they are read, and that is noted"),
    ("stop", "containers are stopped, and started again after"),
];

impl ActionForm {
    fn new(about: ActionFormKind, number: u64, fields: Vec<Field>) -> Self {
        let fields = Fields::new(fields);
        Self {
            about,
            number,
            fields,
            submitting: false,
            job: None,
            error: None,
            offset: 0,
            drawn: false,
        }
    }

    /// The form of a snapshot. Only one alone gets a name.
    pub fn snapshot(number: u64, targets: Vec<Target>) -> Self {
        let mut fields = Vec::new();
        if targets.iter().filter(|target| target.left_out.is_none()).count() == 1 {
            fields.push(Field::text(FieldKey::Name, "none", "unique among snapshots"));
        }
        let mut mode =
            Field::one_of(FieldKey::Mode, &["pause", "live", "stop"], "left and right choose");
        "default: the profile's, else pause where the runtime can".clone_into(&mut mode.default);
        fields.push(mode);
        Self::new(ActionFormKind::Snapshot(targets), number, fields)
    }

    /// The form of a restore.
    pub fn restore(number: u64, target: SnapshotTarget, hosts: &[String]) -> Self {
        let own = target.view.record.host.to_string();
        let mut host = Field::text(FieldKey::Host, &own, "another one gets a copy first");
        if !hosts.is_empty() {
            host.choice = Choice::OneOf(hosts.to_vec());
        }
        let fields = vec![
            Field::text(FieldKey::Name, "none", "unique among sandboxes that are not destroyed"),
            host,
            Field::text(
                FieldKey::Ttl,
                "the profile's",
                "from ready on, such as 90m or 2d; none: no deadline",
            ),
            Field::one_of(
                FieldKey::Strict,
                &["no", "yes"],
                "fail when the host cannot set everything that the archive has",
            ),
            Field::one_of(FieldKey::RequirePatches, &["no", "yes"], "fail when a patch fails"),
        ];
        Self::new(ActionFormKind::Restore(Box::new(target), Comparison::Asking), number, fields)
    }

    /// The form of a new patch.
    pub fn add_patch(number: u64, view: &Arc<SnapshotView>, script: Script) -> Self {
        let mut fields = Vec::new();
        if script == Script::File {
            let mut file =
                Field::text(FieldKey::Script, "", "a file on this machine, at most 96 KiB");
            file.required = true;
            fields.push(file);
        }
        fields.push(Field::text(FieldKey::Description, "none", "what it is for, in a few words"));
        let run_in = "workspace: on the host, in the workspace; or a service's name";
        fields.push(Field::text(FieldKey::RunIn, RUN_IN_WORKSPACE, run_in));
        Self::new(ActionFormKind::AddPatch(Arc::clone(view), script), number, fields)
    }

    /// The form of a rollout.
    pub fn roll_out(number: u64, view: &Arc<SnapshotView>, protected: Vec<SandboxId>) -> Self {
        let help = "so many first; the rest when all went well";
        let mut canary = Field::text(FieldKey::Canary, "all at once", help);
        canary.input = tui_input::Input::new("1".to_owned());
        Self::new(ActionFormKind::RollOut(Arc::clone(view), protected), number, vec![canary])
    }

    /// The form of a later deadline.
    pub fn extend(number: u64, record: Arc<SandboxRecord>) -> Self {
        let by = Field::text(FieldKey::By, EXTENDED_BY, "such as 30m or 2h");
        Self::new(ActionFormKind::Extend(record), number, vec![by])
    }

    /// The form of a grant.
    pub fn grant(number: u64, balance: Option<Usd>) -> Self {
        let mut amount = Field::text(FieldKey::Amount, "", "in US dollars, such as 25 or 0.50");
        amount.required = true;
        let note = Field::text(FieldKey::Note, "none", "for the history: why, or from where");
        Self::new(ActionFormKind::Grant(balance), number, vec![amount, note])
    }

    /// Its title.
    pub fn title(&self) -> String {
        match &self.about {
            ActionFormKind::Snapshot(targets) => match targets.as_slice() {
                [only] => format!("Snapshot of {}", only.title()),
                all => format!("Snapshots of {} sandboxes", all.len()),
            },
            ActionFormKind::Restore(target, _) => format!("Restore {}", target.title()),
            ActionFormKind::AddPatch(view, _) => format!("A patch on {}", view.record.title()),
            ActionFormKind::RollOut(view, _) => {
                format!("Apply the patches of {}", view.record.title())
            }
            ActionFormKind::Extend(record) => format!("Extend {}", record.title()),
            ActionFormKind::Grant(_) => "Grant credits".to_owned(),
        }
    }

    /// What enter does, in a word.
    pub fn verb(&self) -> &'static str {
        match &self.about {
            ActionFormKind::Snapshot(_) => "take it",
            ActionFormKind::Restore(..) => "restore",
            ActionFormKind::AddPatch(..) => "add it",
            ActionFormKind::RollOut(..) => "apply",
            ActionFormKind::Extend(_) => "extend",
            ActionFormKind::Grant(_) => "grant",
        }
    }

    /// What is asked for of one target.
    pub fn snapshot_request(&self, target: &Target) -> SnapshotRequest {
        SnapshotRequest {
            id: target.id.to_string(),
            revision: Some(target.revision),
            name: self.fields.value(&FieldKey::Name),
            mode: self.fields.value(&FieldKey::Mode),
        }
    }

    /// What is asked for of a restore.
    pub fn restore_request(&self, target: &SnapshotTarget) -> RestoreRequest {
        RestoreRequest {
            snapshot: target.id().to_string(),
            revision: Some(target.view.record.revision),
            host: self.fields.value(&FieldKey::Host),
            ttl: self.fields.value(&FieldKey::Ttl),
            name: self.fields.value(&FieldKey::Name),
            require_patches: self.fields.is_yes(&FieldKey::RequirePatches),
            strict: self.fields.is_yes(&FieldKey::Strict),
        }
    }

    /// What is asked for of a later deadline, if it is the one that was shown.
    pub fn extend_request(&self, record: &SandboxRecord) -> ExtendRequest {
        ExtendRequest {
            id: record.id.to_string(),
            expires_at: record.expires_at,
            by_s: self.by().map(Seconds::get),
            ..ExtendRequest::default()
        }
    }

    fn by(&self) -> Option<Seconds> {
        let typed = self.fields.value(&FieldKey::By);
        typed.as_deref().unwrap_or(EXTENDED_BY).parse().ok()
    }

    /// What is asked for of a grant; none where no amount was typed.
    pub fn grant_request(&self) -> Option<GrantRequest> {
        let usd = self.fields.value(&FieldKey::Amount)?.parse().ok()?;
        Some(GrantRequest { usd, note: self.fields.value(&FieldKey::Note) })
    }

    /// What is asked for of a rollout: to those that were shown to get something, of the patches that were shown.
    pub fn rollout_request(&self, view: &SnapshotView) -> RolloutRequest {
        let ready = view.sandboxes.iter().filter(|sandbox| sandbox.state == State::Ready);
        RolloutRequest {
            snapshot: view.record.id.to_string(),
            revision: Some(view.record.revision),
            sandboxes: Some(ready.map(|sandbox| sandbox.id.clone()).collect()),
            canary: self.fields.value(&FieldKey::Canary).and_then(|count| count.parse().ok()),
        }
    }

    /// What is asked for of a new patch; the script is read from its file later, where there is one.
    pub fn patch_request(&self, view: &SnapshotView, script: &Script) -> PatchRequest {
        PatchRequest {
            snapshot: view.record.id.to_string(),
            script: match script {
                Script::File => String::new(),
                Script::Written(text) => text.clone(),
            },
            description: self.fields.value(&FieldKey::Description),
            run_in: self.fields.value(&FieldKey::RunIn),
        }
    }

    /// What stands below the fields, a line each.
    pub fn lines(&self, now: Time) -> Vec<(Role, String)> {
        let mut lines = Vec::new();
        if self.submitting {
            lines.push((Role::Busy, "◐ asking for it…".to_owned()));
        }
        if let Some(problem) = &self.error {
            lines.push((Role::Bad, format!("✗ {}", problem.message)));
            lines.extend(problem.causes.iter().map(|cause| (Role::Plain, format!("  {cause}"))));
            lines.extend(problem.hint.iter().map(|hint| (Role::Key, format!("  {hint}"))));
        }
        match &self.about {
            ActionFormKind::Snapshot(targets) => {
                let mode = self.fields.value(&FieldKey::Mode);
                snapshot_lines(&mut lines, targets, mode.as_deref());
            }
            ActionFormKind::Restore(target, comparison) => {
                restore_lines(&mut lines, target, comparison, now);
            }
            ActionFormKind::AddPatch(view, script) => patch_lines(&mut lines, view, script),
            ActionFormKind::RollOut(view, protected) => roll_out_lines(&mut lines, view, protected),
            ActionFormKind::Extend(record) => extend_lines(&mut lines, record, self.by(), now),
            ActionFormKind::Grant(balance) => {
                let more = self.grant_request().map(|request| request.usd);
                grant_lines(&mut lines, *balance, more);
            }
        }
        lines
    }
}

type Lines = Vec<(Role, String)>;

fn snapshot_lines(lines: &mut Lines, targets: &[Target], chosen: Option<&str>) {
    for (mode, promise) in MODES {
        let role = if chosen == Some(mode) { Role::Accent } else { Role::Dim };
        lines.push((role, format!("{mode}: {promise}")));
    }
    for target in targets {
        match &target.left_out {
            Some(reason) => {
                lines.push((Role::Warn, format!("{}  left out: {reason}", target.title())));
            }
            None => lines.push((
                Role::Plain,
                format!("{}  {} on {}", target.title(), target.state, target.host),
            )),
        }
        lines.extend(target.silent.iter().map(|silent| (Role::Warn, format!("  ⚠ {silent}"))));
    }
    lines.push((
        Role::Dim,
        "The workspace and its volumes are read on the host, and stay there as one archive."
            .to_owned(),
    ));
}

fn restore_lines(lines: &mut Lines, target: &SnapshotTarget, comparison: &Comparison, now: Time) {
    let record = &target.view.record;
    let size = record.archive.bytes.map(|size| format!("{}, ", bytes(size))).unwrap_or_default();
    let mode = record
        .archive
        .mode
        .as_ref()
        .map(|mode| format!(", taken with mode {mode}"))
        .unwrap_or_default();
    let old = age(now.since(record.created_at).as_secs());
    let source = match &record.sandbox_name {
        Some(name) => format!("{} {name}", record.sandbox_id),
        None => record.sandbox_id.to_string(),
    };
    lines.push((Role::Plain, format!("{size}{old} old, of {source}{mode}")));
    lines.extend(target.silent.iter().map(|silent| (Role::Warn, format!("⚠ {silent}"))));
    lines.extend(caveat(&target.view).map(|words| (Role::Warn, format!("⚠ {words}"))));
    for volume in &record.archive.not_captured {
        lines.push((Role::Warn, format!("  not captured: {}: {}", volume.name, volume.reason)));
    }
    match target.view.patches.as_slice() {
        [] => lines.push((Role::Dim, "no patches: it starts as it was".to_owned())),
        patches => {
            lines.push((
                Role::Plain,
                format!("gets {} before it is ready:", many(patches.len(), "patch", "patches")),
            ));
            for patch in patches {
                let about = patch.description.as_deref().unwrap_or("no description");
                lines.push((
                    Role::Plain,
                    format!("  {} {about}  (in {})", patch.sequence, patch.run_in),
                ));
            }
        }
    }
    comparison_lines(lines, comparison, &record.sandbox_id);
}

fn extend_lines(lines: &mut Lines, record: &SandboxRecord, by: Option<Seconds>, now: Time) {
    let left = |at: Time| format!("{at}, in {}", age(at.since(now).as_secs()));
    let Some(was) = record.expires_at else {
        return lines.push((Role::Dim, "it has no deadline".to_owned()));
    };
    lines.push((Role::Plain, format!("ends   {}", left(was))));
    let Some(by) = by else { return };
    let then = was.plus_seconds(by.get());
    lines.push((Role::Accent, format!("then   {}", left(then))));
    if let Some(max) = record.max_expires_at {
        let role = if then > max { Role::Bad } else { Role::Dim };
        lines.push((role, format!("latest {}", left(max))));
    }
}

fn grant_lines(lines: &mut Lines, balance: Option<Usd>, more: Option<Usd>) {
    let Some(balance) = balance else {
        return lines.push((Role::Warn, "how many there are is not known".to_owned()));
    };
    lines.push((Role::Plain, format!("balance  {balance}")));
    if let Some(more) = more {
        lines.push((Role::Accent, format!("then     {}", balance + more)));
    }
}

fn comparison_lines(lines: &mut Lines, comparison: &Comparison, source: &SandboxId) {
    match comparison {
        Comparison::Asking => {
            lines.push((Role::Dim, "comparing it with what it was taken of…".to_owned()));
        }
        Comparison::Failed(problem) => {
            lines.push((Role::Dim, format!("cannot be compared: {}", problem.message)));
        }
        Comparison::Known(diff) => {
            let what = if diff.b == source.as_str() {
                format!("{source} as it is now")
            } else {
                diff.b.clone()
            };
            if diff.added + diff.removed + diff.changed == 0 {
                lines.push((Role::Good, format!("✓ the same files as in {what}")));
            } else {
                let grown = diff.bytes.unsigned_abs();
                let sign = if diff.bytes < 0 { '-' } else { '+' };
                let counts = format!(
                    "{} added, {} removed, {} changed",
                    diff.added, diff.removed, diff.changed
                );
                lines.push((
                    Role::Plain,
                    format!("since then, in {what}: {counts}, {sign}{}", bytes(grown)),
                ));
            }
            for change in diff.changes.iter().take(CHANGES) {
                let (glyph, role) = match change.change.as_str() {
                    "added" => ('+', Role::Good),
                    "removed" => ('-', Role::Bad),
                    _ => ('~', Role::Warn),
                };
                let differs = change.differs.join(", ");
                lines.push((role, format!("  {glyph} {}  {differs}", change.path)));
            }
            let more = diff.changes.len().saturating_sub(CHANGES);
            if more > 0 || diff.truncated {
                let command = format!("sandboxer snapshots diff {}", diff.a);
                lines.push((Role::Dim, format!("  and more: `{command}` shows them")));
            }
            lines.extend(diff.notes.iter().map(|note| (Role::Warn, format!("  {note}"))));
        }
    }
}

fn patch_lines(lines: &mut Lines, view: &SnapshotView, script: &Script) {
    if let Script::Written(text) = script {
        lines.push((
            Role::Dim,
            format!("the script has {}:", many(text.lines().count(), "line", "lines")),
        ));
        lines.extend(text.lines().take(5).map(|line| (Role::Code, format!("  {line}"))));
    }
    let sequence = view.record.next_patch_sequence;
    let restores = "whatever is restored from it gets it too";
    if view.sandboxes.is_empty() {
        lines.push((
            Role::Plain,
            format!(
                "It becomes patch {sequence}. No sandbox is based on the snapshot now; {restores}."
            ),
        ));
    } else {
        let count = many(view.sandboxes.len(), "sandbox gets", "sandboxes get");
        lines.push((
            Role::Plain,
            format!("It becomes patch {sequence}. Nothing runs now: {count} it on the next wake, {restores}:"),
        ));
    }
    for sandbox in &view.sandboxes {
        let name = sandbox.name.as_deref().unwrap_or("—");
        let blocked = if is_blocked(sandbox) {
            ", but only once the patch that failed there is out of the way"
        } else {
            ""
        };
        let role = if blocked.is_empty() { Role::Good } else { Role::Warn };
        lines.push((role, format!("  … {} {name}  {}{blocked}", sandbox.id, sandbox.state)));
    }
    let never = match view.children.len() {
        0 => "Snapshots taken of those never get it, nor what is based on them".to_owned(),
        count => {
            format!(
                "Never: {} taken of those, and what is based on them",
                many(count, "snapshot", "snapshots")
            )
        }
    };
    lines.push((
        Role::Dim,
        format!("{never}; nor does {}, from which it was taken.", view.record.sandbox_id),
    ));
}

fn roll_out_lines(lines: &mut Lines, view: &SnapshotView, protected: &[SandboxId]) {
    let owing = |sandbox: &&BasedOn| !sandbox.owes.is_empty() && sandbox.state == State::Ready;
    if view.sandboxes.iter().filter(owing).all(|sandbox| protected.contains(&sandbox.id)) {
        lines.push((
            Role::Warn,
            "No sandbox that is ready has to get any: there is nothing to apply.".to_owned(),
        ));
    }
    for sandbox in &view.sandboxes {
        let name = sandbox.name.as_deref().unwrap_or("—");
        let owes: Vec<String> = sandbox.owes.iter().map(ToString::to_string).collect();
        let owes = owes.join(", ");
        let (role, what) = if owes.is_empty() && !is_blocked(sandbox) {
            (Role::Dim, "has them all".to_owned())
        } else if protected.contains(&sandbox.id) {
            (Role::Warn, "passed over: it is protected".to_owned())
        } else if sandbox.state == State::Sleeping && !is_blocked(sandbox) {
            (Role::Plain, format!("sleeps: gets {owes} when it wakes"))
        } else if sandbox.state != State::Ready {
            (Role::Warn, format!("passed over: it is {}", sandbox.state))
        } else if let Some(error) = sandbox.patch_error.as_ref().filter(|_| is_blocked(sandbox)) {
            (Role::Bad, format!("stops it: {error}"))
        } else {
            (Role::Plain, format!("gets {owes}"))
        };
        lines.push((role, format!("  {} {name}  {}  {what}", sandbox.id, sandbox.state)));
    }
    lines.push((
        Role::Dim,
        "They run now. It stops at the first failure: no other sandbox is begun then.".to_owned(),
    ));
}
