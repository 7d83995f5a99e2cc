//! Images that must be on the host before the stack can be started or built, as far as the files tell it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::error::RenderError;
use super::images::is_image;
use super::keys::is_on;
use super::lexical::normalize;
use super::merge::scalar;
use super::paths::Target;
use super::paths::Workspace;
use super::tree::Entry;

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// Where the host lacks it.
    Missing,
    /// Each time.
    Always,
    /// Not at all.
    Never,
}

impl PullPolicy {
    /// Its word in a compose file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "always" => Self::Always,
            "never" => Self::Never,
            _ => Self::Missing,
        }
    }
}

/// An image that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Its name.
    pub image: String,
    pub policy: PullPolicy,
    /// For which platform; empty for the host's.
    pub platform: String,
    /// Path of whoever wants it, as in `services.web.image`.
    pub path: String,
}

/// Images that the services of a rendered project are started from, and those that builds begin with. A base image whose name
/// depends on what only the builder knows is left to the build.
pub(super) fn of(project: &Value, workspace: &Workspace<'_>) -> Result<Vec<Pull>, RenderError> {
    let mut pulls: Vec<Pull> = Vec::new();
    let services = project.get("services").and_then(Value::as_object);
    let services: Vec<(&String, &Map<String, Value>)> = services
        .into_iter()
        .flatten()
        .filter_map(|(name, service)| Some((name, service.as_object()?)))
        .collect();
    let of_service =
        |service: &Map<String, Value>, key: &str| service.get(key).map(scalar).unwrap_or_default();
    let built: BTreeSet<String> = services
        .iter()
        .filter(|(_, service)| service.contains_key("build"))
        .map(|(_, service)| of_service(service, "image"))
        .collect();
    for (name, service) in services {
        let platform = of_service(service, "platform");
        let mut add = |image: String, policy: PullPolicy, path: String| {
            if is_image(&image)
                && !built.contains(&image)
                && !pulls.iter().any(|pull| pull.image == image)
            {
                pulls.push(Pull { image, policy, platform: platform.clone(), path });
            }
        };
        if let Some(build) = service.get("build").and_then(Value::as_object) {
            let policy = if build.get("pull").is_some_and(is_on) {
                PullPolicy::Always
            } else {
                PullPolicy::Missing
            };
            for image in bases(build, workspace)? {
                add(image, policy, format!("services.{name}.build"));
            }
        } else if service.get("scale").map(scalar).as_deref() != Some("0") {
            let policy = PullPolicy::of(&of_service(service, "pull_policy"));
            add(of_service(service, "image"), policy, format!("services.{name}.image"));
        }
    }
    Ok(pulls)
}

fn bases(
    build: &Map<String, Value>,
    workspace: &Workspace<'_>,
) -> Result<Vec<String>, RenderError> {
    let none = Map::new();
    let mapping = |key: &str| build.get(key).and_then(Value::as_object).unwrap_or(&none);
    let arguments: BTreeMap<&str, String> =
        mapping("args").iter().map(|(name, value)| (name.as_str(), scalar(value))).collect();
    let contexts = mapping("additional_contexts");
    let Some(dockerfile) = dockerfile(build, workspace)? else { return Ok(Vec::new()) };
    let images = base_images(&dockerfile, &arguments, build.get("target").map(scalar).as_deref());
    Ok(images.into_iter().filter(|image| !contexts.contains_key(image)).collect())
}

/// The text of a build's Dockerfile; none where it is not in the workspace.
fn dockerfile(
    build: &Map<String, Value>,
    workspace: &Workspace<'_>,
) -> Result<Option<String>, RenderError> {
    let text = |key: &str| build.get(key).map(scalar);
    if let Some(inline) = text("dockerfile_inline") {
        return Ok(Some(inline));
    }
    let (file, context) = (text("dockerfile"), text("context").unwrap_or_default());
    let file = file.unwrap_or_else(|| "Dockerfile".to_owned());
    let anchored =
        if file.starts_with('/') { file } else { normalize(&format!("{context}/{file}")) };
    let unreadable = |source| RenderError::Unreadable { file: anchored.clone(), source };
    let Target::Inside(path, Entry::File) = workspace.locate(&anchored).map_err(unreadable)? else {
        return Ok(None);
    };
    let bytes = workspace.tree.read(&path).map_err(unreadable)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// A stage of a Dockerfile: its name, and what it takes from where.
#[derive(Default)]
struct Stage {
    name: String,
    from: Vec<String>,
}

/// The images that the wanted stage of a Dockerfile is made from, as far as they are told.
fn base_images(
    dockerfile: &str,
    arguments: &BTreeMap<&str, String>,
    target: Option<&str>,
) -> Vec<String> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut defaults: BTreeMap<String, String> = BTreeMap::new();
    for instruction in instructions(dockerfile) {
        let mut words = instruction.split_whitespace();
        let keyword = words.next().unwrap_or_default().to_ascii_uppercase();
        let words: Vec<&str> = words.collect();
        match (keyword.as_str(), stages.last_mut()) {
            ("ARG", None) => {
                for word in words {
                    let (name, default) = word.split_once('=').unwrap_or((word, ""));
                    let value = arguments.get(name).cloned().or_else(|| {
                        expand(default.trim_matches(['"', '\'']), &defaults)
                            .filter(|_| word.contains('='))
                    });
                    defaults.extend(value.map(|value| (name.to_owned(), value)));
                }
            }
            ("FROM", _) => {
                let mut words = words.into_iter().skip_while(|word| word.starts_with("--"));
                let from = words.next().and_then(|image| expand(image, &defaults));
                let name = words.nth(1).unwrap_or_default().to_ascii_lowercase();
                stages.push(Stage { name, from: from.into_iter().collect() });
            }
            ("COPY" | "ADD" | "RUN", Some(stage)) => {
                stage.from.extend(words.into_iter().filter_map(taken_from));
            }
            _ => {}
        }
    }
    needed(&stages, target)
}

/// Where a word of an instruction takes something from: `--from=X`, or `--mount=type=bind,from=X,…`.
fn taken_from(word: &str) -> Option<String> {
    let from = word.strip_prefix("--from=").or_else(|| {
        word.strip_prefix("--mount=")?.split(',').find_map(|option| option.strip_prefix("from="))
    })?;
    Some(from.to_owned()).filter(|from| !from.contains('$'))
}

/// From the wanted stage down: builders leave out what nothing of it needs.
fn needed(stages: &[Stage], target: Option<&str>) -> Vec<String> {
    let number = |word: &str| word.parse::<usize>().ok().filter(|number| *number < stages.len());
    // A name means the nearest stage above.
    let stage = |word: &str, above: usize| {
        stages[..above]
            .iter()
            .rposition(|stage| !stage.name.is_empty() && stage.name.eq_ignore_ascii_case(word))
    };
    let Some(last) = stages.len().checked_sub(1) else { return Vec::new() };
    let wanted = target.and_then(|word| stage(word, stages.len()).or_else(|| number(word)));
    let (mut todo, mut done) = (vec![wanted.unwrap_or(last)], BTreeSet::new());
    let mut images = Vec::new();
    while let Some(at) = todo.pop() {
        if !done.insert(at) {
            continue;
        }
        for (index, from) in stages[at].from.iter().enumerate() {
            // `FROM 0` is an image; `--from=0` is a stage.
            match stage(from, at).or_else(|| number(from).filter(|_| index > 0)) {
                Some(other) => todo.push(other),
                None if from.eq_ignore_ascii_case("scratch") || images.contains(from) => {}
                None => images.push(from.clone()),
            }
        }
    }
    images
}

/// Whole instructions: lines that go on are joined, comments and here-documents left out.
fn instructions(dockerfile: &str) -> Vec<String> {
    let directive =
        dockerfile.lines().map_while(|line| line.trim().strip_prefix('#')).find_map(|line| {
            let (name, value) = line.split_once('=')?;
            name.trim().eq_ignore_ascii_case("escape").then(|| value.trim().chars().next())?
        });
    let escape = directive.unwrap_or('\\');
    let mut found = Vec::new();
    let mut whole = String::new();
    let mut lines = dockerfile.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        if let Some(begun) = line.strip_suffix(escape) {
            whole.push_str(begun);
            whole.push(' ');
            continue;
        }
        whole.push_str(line);
        let ends = here_documents(&whole);
        for end in ends {
            // Its text may be anything, also `FROM`.
            lines.by_ref().find(|line| line.trim_start_matches('\t').trim_end() == end);
        }
        found.push(std::mem::take(&mut whole));
    }
    if !whole.is_empty() {
        found.push(whole);
    }
    found
}

/// The words that end the here-documents of an instruction.
fn here_documents(instruction: &str) -> Vec<String> {
    let keyword = instruction.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    if !matches!(keyword.as_str(), "RUN" | "COPY" | "ADD") {
        return Vec::new();
    }
    let begun = instruction.split_whitespace().filter_map(|word| {
        word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<")
    });
    let words = begun.map(|word| word.trim_start_matches('-').trim_matches(['"', '\'']).to_owned());
    words
        .filter(|word| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
        .collect()
}

/// `$NAME` and `${NAME}`, with `:-` and `-`; none where anything stays that only the builder knows.
fn expand(text: &str, known: &BTreeMap<String, String>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, default, behind) = if let Some(braced) = after.strip_prefix('{') {
            let (inner, behind) = braced.split_once('}')?;
            let (name, default) = match inner.split_once('-') {
                Some((name, default)) => (name.trim_end_matches(':'), Some(default)),
                None => (inner, None),
            };
            (name, default, behind)
        } else {
            let end =
                after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            (&after[..end], None, &after[end..])
        };
        let value =
            known.get(name).filter(|value| !value.is_empty()).map(String::as_str).or(default)?;
        out.push_str(value);
        rest = behind;
    }
    out.push_str(rest);
    Some(out).filter(|out| !out.contains('$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(dockerfile: &str, arguments: &[(&str, &str)], target: Option<&str>) -> Vec<String> {
        let arguments =
            arguments.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        base_images(dockerfile, &arguments, target)
    }

    #[test]
    fn the_base_images_of_the_wanted_stage_are_told() {
        let staged = "FROM a AS one\nFROM b:2 as Two\nCOPY --from=one /x /x\nFROM c\nRUN --mount=type=bind,from=d:1,target=/d true\nFROM two AS last\n";
        for (dockerfile, arguments, target, want) in [
            ("FROM alpine:3\n", &[][..], None, &["alpine:3"][..]),
            ("# FROM no\n\nfrom --platform=$BUILDPLATFORM alpine\n", &[], None, &["alpine"]),
            ("FROM scratch\nCOPY . /\n", &[], None, &[]),
            ("ARG V=3\nARG N=\"alpine\"\nFROM ${N}:$V\n", &[], None, &["alpine:3"]),
            ("ARG V=3\nFROM alpine:${V}\n", &[("V", "4")], None, &["alpine:4"]),
            ("ARG V\nFROM alpine:${V:-edge}\n", &[], None, &["alpine:edge"]),
            // Only the builder knows.
            ("FROM alpine:$TARGETARCH\n", &[], None, &[]),
            ("ARG V\nFROM alpine:$V\n", &[], None, &[]),
            (staged, &[], None, &["b:2", "a"]),
            (staged, &[], Some("one"), &["a"]),
            (staged, &[], Some("2"), &["c", "d:1"]),
            ("FROM \\\n  alpine\nRUN x \\\nFROM y\n", &[], None, &["alpine"]),
            ("# escape=`\nFROM `\n  alpine\n", &[], None, &["alpine"]),
            ("FROM a\nRUN <<EOF\nFROM b\nEOF\nRUN x\n", &[], None, &["a"]),
            (
                "FROM a\nRUN cat <<-'E' >f && x\nFROM b\n\tE\nCOPY --from=0 /x /y\n",
                &[],
                None,
                &["a"],
            ),
            ("FROM a\nFROM b\nCOPY --from=0 /x /y\n", &[], None, &["b", "a"]),
            ("RUN nothing\n", &[], None, &[]),
            ("", &[], None, &[]),
        ] {
            assert_eq!(images(dockerfile, arguments, target), want, "{dockerfile}");
        }
    }
}
