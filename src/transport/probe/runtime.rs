//! Compose runtimes of a host, read from what `scripts/runtime.sh` printed.

use crate::domain::facts::{Engine, Flavour, Runtime};
use crate::domain::host_report::{DetectionScope, RuntimeDetection};
use crate::domain::text::clean_line;
use crate::domain::time::Time;

use super::lines::{ScriptEntry, entries};

/// Runtime that was found, and why the rest does not count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RuntimeReport {
    /// The runtimes whose engine answers, the preferred one first.
    pub runtimes: Vec<Runtime>,
    /// The engines that answer.
    pub engines: Vec<Engine>,
    /// A sentence for each runtime or engine that is there and does not count.
    pub findings: Vec<String>,
    /// The host's fingerprint, where it was asked for and could be made.
    pub fingerprint: Option<String>,
    /// Detection, to be kept; none where it rests on what was known, or on nothing that shows a change.
    pub detection: Option<RuntimeDetection>,
}

/// Question for compose runtimes, and what is known of the answer.
#[derive(Debug, Clone)]
pub(crate) struct Detecting<'a> {
    /// Extent of the question.
    pub scope: DetectionScope,
    /// The compose command that the operator named, in words; empty: none.
    pub words: &'a [String],
    /// Detection from before, where it holds by all that is known on this side.
    pub known: Option<&'a RuntimeDetection>,
    /// The present moment.
    pub now: Time,
}

impl<'a> Detecting<'a> {
    /// With what was found before, where it still holds.
    pub(crate) fn new(
        scope: DetectionScope,
        words: &'a [String],
        known: Option<&'a RuntimeDetection>,
        now: Time,
    ) -> Self {
        let known = known.filter(|known| known.holds(now, words, &scope));
        Self { scope, words, known, now }
    }

    /// Same without what was found before.
    #[must_use]
    pub(crate) fn anew(&self) -> Self {
        Self { known: None, ..self.clone() }
    }

    /// The mode of `sbx_runtime`, and the words behind it.
    pub(crate) fn arguments(&self) -> (&'a str, Vec<String>) {
        let scope = match self.scope {
            DetectionScope::First => "first",
            _ => "all",
        };
        let known = self.known.and_then(|known| Some((known, known.runtimes.first()?)));
        match known {
            Some((known, preferred)) => {
                let before = [scope, &known.fingerprint, engine_word(preferred)];
                let before = before.into_iter().map(str::to_owned);
                ("known", before.chain(self.words.iter().cloned()).collect())
            }
            None => (scope, self.words.to_vec()),
        }
    }

    /// The answer. Nothing of what was known is in it unless the host showed the same fingerprint and its engine is of the same
    /// kind.
    pub(crate) fn read(&self, lines: &str) -> RuntimeReport {
        let mut report = parse_runtimes(lines);
        match self.known {
            Some(known) if said_known(lines) => {
                let of_kind =
                    entries(lines).iter().any(|entry| entry.key == "rt.docker-server.status");
                refresh(&known.runtimes, &mut report, of_kind);
            }
            _ => report.detection = self.detection(&report),
        }
        report
    }

    fn detection(&self, report: &RuntimeReport) -> Option<RuntimeDetection> {
        let detection = RuntimeDetection {
            at: self.now,
            fingerprint: report.fingerprint.clone()?,
            compose_cmd: self.words.to_vec(),
            scope: self.scope.clone(),
            runtimes: report.runtimes.clone(),
            findings: report.findings.clone(),
            address_pools: None,
        };
        // A detection that could not be used the next time need not be kept.
        detection.holds(self.now, self.words, &self.scope).then_some(detection)
    }
}

/// Word of `sbx_runtime` for a runtime's engine.
pub(crate) fn engine_word(runtime: &Runtime) -> &str {
    if runtime.podman_behind && runtime.engine == "docker" { "behind" } else { &runtime.engine }
}

/// Whether the script says that the fingerprint is the one that was known.
fn said_known(lines: &str) -> bool {
    entries(lines).iter().any(|entry| entry.key == "rt.known" && entry.value == "yes")
}

/// Everything in what `sbx_runtime` printed. Other lines are skipped.
pub(crate) fn parse_runtimes(lines: &str) -> RuntimeReport {
    let said = ScriptOutput { entries: entries(lines) };
    let mut report = RuntimeReport { fingerprint: said.fingerprint(), ..RuntimeReport::default() };
    said.docker(&mut report);
    said.podman(&mut report);
    let words: Vec<String> = said.values("word").map(str::to_owned).collect();
    if words.is_empty() {
        said.tool(&mut report, "docker-compose-v2", &["docker", "compose"]);
        said.tool(&mut report, "docker-compose", &["docker-compose"]);
        said.tool(&mut report, "podman-compose", &["podman-compose"]);
    } else {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        said.tool(&mut report, "override", &words);
    }
    report
}

/// Runtimes that are known, with what the engines say now. One whose engine no longer answers is left out, and all of them where
/// the preferred one's is of another kind by now.
fn refresh(known: &[Runtime], report: &mut RuntimeReport, of_kind: bool) {
    for (index, runtime) in known.iter().enumerate() {
        let engine = report.engines.iter().find(|engine| engine.program == runtime.engine);
        match engine {
            Some(engine) if is_alike(engine, runtime, of_kind) => {
                report.runtimes.push(Runtime {
                    engine_version: engine.version.clone().or(runtime.engine_version.clone()),
                    engine_id: engine.id.clone(),
                    rootless: engine.rootless,
                    ..runtime.clone()
                });
            }
            Some(_) | None if index == 0 => return,
            Some(_) | None => report.findings.push(format!(
                "{}: {} does not answer",
                runtime.command.join(" "),
                runtime.engine
            )),
        }
    }
}

/// Whether an engine is of a runtime's kind: where docker was not asked for that (`of_kind`), the one with its id is.
fn is_alike(engine: &Engine, runtime: &Runtime, of_kind: bool) -> bool {
    if of_kind || engine.program == "podman" {
        engine.podman_behind == runtime.podman_behind
    } else {
        engine.id == runtime.engine_id
    }
}

/// The tagged lines of a run.
struct ScriptOutput<'a> {
    entries: Vec<ScriptEntry<'a>>,
}

impl<'a> ScriptOutput<'a> {
    fn values(&self, tag: &'a str) -> impl Iterator<Item = &'a str> + '_ {
        self.entries
            .iter()
            .filter(move |entry| entry.key.strip_prefix("rt.") == Some(tag))
            .map(|entry| entry.value)
            .filter(|value| !value.is_empty())
    }

    /// Fingerprint; text that only looks like a hash is none.
    fn fingerprint(&self) -> Option<String> {
        let text = self.values("fingerprint").next()?;
        let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| text.to_owned())
    }

    /// `None`: it was not asked.
    fn status(&self, tag: &str) -> Option<i32> {
        let entry = self.entries.iter().find(|entry| {
            entry
                .key
                .strip_prefix("rt.")
                .and_then(|key| key.strip_suffix(".status"))
                .is_some_and(|key| key == tag)
        })?;
        entry.value.parse().ok()
    }

    /// Fields that our template printed, warnings of the program around it left out.
    fn fields(&self, tag: &'a str) -> Option<&'a str> {
        self.values(tag).find_map(|value| value.strip_prefix("sbx|"))
    }

    /// Why a call failed, in the program's words.
    fn reason(&self, tag: &'a str) -> String {
        match self.status(tag) {
            // 124 and 137 are timeout(1)'s and KILL's.
            Some(124 | 137 | 143) => "it did not answer in time".to_owned(),
            status => self
                .values(tag)
                .filter(|value| !value.starts_with("sbx|") && !value.starts_with("inode|"))
                .find(|value| !value.trim().is_empty())
                .map_or_else(
                    || format!("it ended with status {}", status.unwrap_or(-1)),
                    |value| clean_line(value, 300),
                ),
        }
    }

    fn docker(&self, report: &mut RuntimeReport) {
        let Some(status) = self.status("docker") else { return };
        // The folder comes last: it alone may hold a `|`.
        let parts: Vec<&str> = self.fields("docker").unwrap_or_default().splitn(4, '|').collect();
        let [id, version, security, folder] = parts[..] else {
            report.findings.push(format!("docker: no engine answers: {}", self.reason("docker")));
            return;
        };
        if status != 0 || version.is_empty() {
            report.findings.push(format!("docker: no engine answers: {}", self.reason("docker")));
            return;
        }
        let components = self.fields("docker-server").unwrap_or_default();
        let podman_behind =
            components.split('|').skip(1).any(|name| name.to_ascii_lowercase().contains("podman"));
        let inode = self
            .values("docker")
            .find_map(|value| value.strip_prefix("inode|"))
            .unwrap_or_default();
        // Podman's socket makes up a new `ID` for every question.
        let id = if podman_behind { format!("{folder}:{inode}") } else { id.to_owned() };
        report.engines.push(Engine {
            program: "docker".to_owned(),
            version: Some(version.to_owned()),
            id: (!id.is_empty()).then_some(id),
            rootless: security.contains("name=rootless") || security.contains("\"rootless\""),
            podman_behind,
        });
    }

    fn podman(&self, report: &mut RuntimeReport) {
        let Some(status) = self.status("podman") else { return };
        let (inode, folder) =
            self.fields("podman").and_then(|text| text.split_once('|')).unwrap_or_default();
        if status != 0 || folder.is_empty() {
            report.findings.push(format!("podman: does not answer: {}", self.reason("podman")));
            return;
        }
        report.engines.push(Engine {
            program: "podman".to_owned(),
            version: self.values("podman-version").find_map(|line| after_word(line, "version")),
            id: Some(format!("{folder}:{inode}")),
            rootless: self.values("uid").next().is_some_and(|uid| uid != "0"),
            podman_behind: false,
        });
    }

    /// Compose command: what it is, and whether an engine for it answers.
    fn tool(&self, report: &mut RuntimeReport, tag: &'a str, command: &[&str]) {
        let Some(status) = self.status(tag) else { return };
        let name = clean_line(&command.join(" "), 200);
        if status != 0 {
            // Docker without an engine is one finding, not two; so is docker without its compose plugin.
            if tag == "override" || report.engines.iter().any(|engine| engine.program == "docker") {
                report.findings.push(format!("{name}: does not run: {}", self.reason(tag)));
            }
            return;
        }
        let Some((flavour, version)) = self.values(tag).find_map(flavour) else {
            report.findings.push(format!(
                "{name}: what it says of its version names no compose tool that is known here"
            ));
            return;
        };
        let Some(engine) = self.engine(&report.engines, &flavour) else {
            report.findings.push(format!("{name}: there is no engine that answers it"));
            return;
        };
        let runtime = Runtime {
            flavour,
            version,
            command: command.iter().map(|&word| word.to_owned()).collect(),
            engine: engine.program.clone(),
            engine_version: engine.version.clone(),
            engine_id: engine.id.clone(),
            rootless: engine.rootless,
            chosen: if tag == "override" { "override" } else { "detected" }.to_owned(),
            podman_behind: engine.podman_behind,
        };
        report.runtimes.push(runtime);
    }

    /// The engine that a compose tool drives.
    fn engine<'e>(&self, engines: &'e [Engine], flavour: &Flavour) -> Option<&'e Engine> {
        let podman = engines.iter().find(|engine| engine.program == "podman");
        if *flavour == Flavour::PodmanCompose {
            return podman;
        }
        let Some(docker) = engines.iter().find(|engine| engine.program == "docker") else {
            // No docker client, but docker's socket: podman listens on it.
            return podman.filter(|_| {
                self.status("docker").is_none() && self.values("socket").next().is_some()
            });
        };
        // Asked directly, podman says more than through docker's words; but only if it is the same storage.
        if docker.podman_behind {
            podman.filter(|podman| podman.id == docker.id).or(Some(docker))
        } else {
            Some(docker)
        }
    }
}

/// Tool that a line of `version` names, and its version.
fn flavour(line: &str) -> Option<(Flavour, String)> {
    let lower = line.to_ascii_lowercase();
    let flavour = if lower.starts_with("docker compose version") {
        Flavour::DockerComposeV2
    } else if lower.starts_with("docker-compose version") {
        // v2 as a program of its own can say either.
        if after_word(line, "version")?.starts_with("1.") {
            Flavour::DockerComposeV1
        } else {
            Flavour::DockerComposeV2
        }
    } else if lower.starts_with("podman-compose") && lower.contains("version") {
        // 1.0.x calls itself "podman-composer".
        Flavour::PodmanCompose
    } else {
        return None;
    };
    Some((flavour, after_word(line, "version")?))
}

/// The word behind another one, without the `v` and the punctuation around a version.
fn after_word(line: &str, word: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|part| part.trim_end_matches(':') != word);
    let version = words.nth(1)?.trim_end_matches([',', ';']);
    let version = version.strip_prefix('v').unwrap_or(version);
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| clean_line(version, 60))
}

#[cfg(test)]
mod tests;
