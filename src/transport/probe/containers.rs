//! Containers of sandboxes, and where the kernel counts what they use: learnt with the inventory, read by the light probe.

use std::collections::BTreeMap;

use super::lines::ScriptEntry;
use crate::domain::Time;
use crate::domain::name::SandboxId;

const MOUNT: &str = "/sys/fs/cgroup";
const ID_LENGTH: usize = 64;

/// Generation of control groups that has the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CgroupVersion {
    /// A hierarchy for each controller.
    V1,
    V2,
}

/// Control groups of containers that are alike: their paths are the same but for the container's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ControlGroup {
    pub(super) version: CgroupVersion,
    /// Part before the id in the path of the processor's figures.
    pub(super) processor: String,
    /// The same for the memory's.
    pub(super) memory: String,
    /// Part behind the id in both.
    pub(super) ending: String,
}

/// Use of a container, as its engine said it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReportedUse {
    pub(super) at: Time,
    /// Percent of one processor.
    pub(super) cpu_pct: Option<f64>,
    pub(super) memory_bytes: u64,
}

/// A running container of a sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// Id: 64 hexadecimal digits.
    pub(super) id: String,
    pub(super) sandbox: SandboxId,
    /// Control group; none where the host does not show it.
    pub(super) group: Option<ControlGroup>,
    /// The engine's own figures, where there is no control group to read.
    pub(super) said: Option<ReportedUse>,
}

/// Whether a text can be a container's id, and so a part of a path.
pub(super) fn is_container_id(text: &str) -> bool {
    text.len() == ID_LENGTH && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The running containers among those that belong to sandboxes, `sandboxes` by the container's id; and findings.
pub(super) fn parse(
    entries: &[ScriptEntry<'_>],
    sandboxes: &BTreeMap<String, SandboxId>,
    now: Time,
) -> (Vec<Container>, Vec<String>) {
    let mut groups: BTreeMap<String, Paths> = BTreeMap::new();
    let mut said: Vec<(&str, ReportedUse)> = Vec::new();
    let mut unseen: Vec<(&str, &str)> = Vec::new();
    for entry in entries {
        match entry.key {
            "cgroups" => entry.body.iter().for_each(|line| membership(&mut groups, line)),
            "unseen" => unseen.extend(entry.value.split_once(' ')),
            "stats" => said.extend(entry.body.iter().filter_map(|line| said_use(line, now))),
            _ => {}
        }
    }
    let mut silent: BTreeMap<&str, usize> = BTreeMap::new();
    let mut containers = Vec::new();
    for (id, paths) in &groups {
        if let (Some(sandbox), Some(group)) = (sandboxes.get(id), paths.group()) {
            let (id, sandbox) = (id.clone(), sandbox.clone());
            containers.push(Container { id, sandbox, group: Some(group), said: None });
        }
    }
    for (engine, id) in unseen {
        let Some(sandbox) = sandboxes.get(id) else { continue };
        // Podman's own table has the first twelve digits.
        let figures = said.iter().find(|(short, _)| short.len() >= 12 && id.starts_with(short));
        if let Some((_, figures)) = figures {
            let (id, sandbox) = (id.to_owned(), sandbox.clone());
            containers.push(Container { id, sandbox, group: None, said: Some(*figures) });
        } else {
            *silent.entry(engine).or_default() += 1;
        }
    }
    let findings = silent.into_iter().map(|(engine, count)| {
        format!(
            "what {} of sandboxes use cannot be read: the host does not show their control groups, and `{engine} stats` does not say it",
            crate::domain::text::plural(count as u64, "container", "containers")
        )
    });
    (containers, findings.collect())
}

/// Paths of one container's control groups, as `/proc/PID/cgroup` has them.
#[derive(Default)]
struct Paths {
    processor: Option<(String, String)>,
    memory: Option<(String, String)>,
    unified: Option<(String, String)>,
}

impl Paths {
    /// Where the figures are: in the old hierarchies where the controllers are there, else in the one of the second generation.
    fn group(&self) -> Option<ControlGroup> {
        let under = |controller: &str, path: &str| format!("{MOUNT}{controller}{path}");
        if let (Some((processor, ending)), Some((memory, other))) = (&self.processor, &self.memory)
        {
            return (ending == other).then(|| ControlGroup {
                version: CgroupVersion::V1,
                processor: under("/cpuacct", processor),
                memory: under("/memory", memory),
                ending: ending.clone(),
            });
        }
        let (path, ending) = self.unified.as_ref()?;
        Some(ControlGroup {
            version: CgroupVersion::V2,
            processor: under("", path),
            memory: under("", path),
            ending: ending.clone(),
        })
    }
}

/// A line of `/proc/PID/cgroup` behind that file's name: `/proc/7/cgroup:4:memory:/docker/<id>`.
fn membership(groups: &mut BTreeMap<String, Paths>, line: &str) {
    let mut parts = line.splitn(4, ':');
    let (Some(_), Some(_), Some(controllers), Some(path)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let Some((before, id, ending)) = around_id(path) else { return };
    let paths = groups.entry(id.to_owned()).or_default();
    let place = || Some((before.to_owned(), ending.to_owned()));
    if controllers.is_empty() {
        paths.unified = place();
    }
    for controller in controllers.split(',') {
        match controller {
            "cpuacct" => paths.processor = place(),
            "memory" => paths.memory = place(),
            _ => {}
        }
    }
}

/// A path up to the part that holds a container's id: what stands before the id, the id, and the rest of that part. What a
/// container made below its own group counts with it.
fn around_id(path: &str) -> Option<(&str, &str, &str)> {
    let sound = path.starts_with('/')
        && path.split('/').all(|part| part != "..")
        && path.bytes().all(|b| b.is_ascii_graphic());
    let mut start = 0;
    for part in path.split('/').filter(|_| sound) {
        let end = start + part.len();
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
        let id = part
            .split(['-', '.', ':', '_'])
            .find(|word| word.len() == ID_LENGTH && digits(word) && is_container_id(word));
        if let Some(id) = id {
            let at = start + part.find(id)?;
            return Some((&path[..at], id, &path[at + ID_LENGTH..end]));
        }
        start = end + 1;
    }
    None
}

/// A line of `stats`: `ID 0.05% 1.2MiB / 2GiB`.
fn said_use(line: &str, at: Time) -> Option<(&str, ReportedUse)> {
    let mut words = line.split_whitespace();
    let (id, pct) = (words.next()?, words.next()?);
    let cpu_pct = pct.strip_suffix('%').and_then(|pct| pct.parse().ok());
    let cpu_pct = cpu_pct.filter(|pct: &f64| pct.is_finite() && *pct >= 0.0);
    let memory_bytes = size(words.next()?)?;
    let is_id = id.len() <= ID_LENGTH && id.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then_some((id, ReportedUse { at, cpu_pct, memory_bytes }))
}

/// A size as engines print it: `12.5MiB`, `1.2kB`.
fn size(text: &str) -> Option<u64> {
    let letters = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(letters);
    let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite())?;
    let factor = match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "TiB" => 1_099_511_627_776.0,
        _ => return None,
    };
    (number >= 0.0).then_some((number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn told(body: &[&str], keys: &str) -> String {
        let text = format!("{keys}cgroups=\n {}\n\n", body.join("\n "));
        let sandboxes = BTreeMap::from([(ID.to_owned(), SandboxId::new("aa"))]);
        let entries = super::super::lines::entries(&text);
        let (containers, findings) = parse(&entries, &sandboxes, Time::from_unix(7));
        let group = |container: &Container| {
            let group = container.group.as_ref()?;
            Some(format!(
                "{:?} {}|{}|{}",
                group.version, group.processor, group.memory, group.ending
            ))
        };
        let said = |container: &Container| {
            let said = container.said?;
            Some(format!("{:?} {}", said.cpu_pct, said.memory_bytes))
        };
        let told = containers.iter().filter_map(|container| group(container).or(said(container)));
        told.chain(findings.iter().map(|finding| finding[..20].to_owned()))
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn groups_of_every_driver_and_generation() {
        let v1 = |cpu: &str, memory: &str| {
            [format!("/proc/7/cgroup:3:{cpu}"), format!("/proc/7/cgroup:4:{memory}")]
        };
        for (lines, expected) in [
            (
                v1(&format!("cpuacct:/docker/{ID}"), &format!("memory:/docker/{ID}")),
                "V1 /sys/fs/cgroup/cpuacct/docker/|/sys/fs/cgroup/memory/docker/|",
            ),
            (
                v1(
                    &format!("cpu,cpuacct:/system.slice/docker-{ID}.scope"),
                    &format!("memory:/system.slice/docker-{ID}.scope"),
                ),
                "V1 /sys/fs/cgroup/cpuacct/system.slice/docker-|/sys/fs/cgroup/memory/system.slice/docker-|.scope",
            ),
            (
                [
                    format!("/proc/7/cgroup:0::/machine.slice/libpod-{ID}.scope/container"),
                    String::new(),
                ],
                "V2 /sys/fs/cgroup/machine.slice/libpod-|/sys/fs/cgroup/machine.slice/libpod-|.scope",
            ),
            (
                [
                    format!(
                        "/proc/7/cgroup:0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope"
                    ),
                    String::new(),
                ],
                "V2 /sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-|/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-|.scope",
            ),
            (
                // Hybrid: the unified hierarchy has no controllers.
                [
                    format!(
                        "/proc/7/cgroup:4:memory,cpuacct:/libpod_parent/libpod-{ID}/init.scope"
                    ),
                    format!("/proc/7/cgroup:0::/libpod_parent/libpod-{ID}"),
                ],
                "V1 /sys/fs/cgroup/cpuacct/libpod_parent/libpod-|/sys/fs/cgroup/memory/libpod_parent/libpod-|",
            ),
            // Another container's, no container's, out of the tree, with what no path of the kernel's has.
            ([format!("/proc/7/cgroup:0::/docker/{}", ID.replace('0', "f")), String::new()], ""),
            (["/proc/7/cgroup:0::/user.slice/user-1000.slice".to_owned(), String::new()], ""),
            ([format!("/proc/7/cgroup:0::/../../etc/{ID}"), String::new()], ""),
            ([format!("/proc/7/cgroup:0::/a b/{ID}"), String::new()], ""),
            ([format!("/proc/7/cgroup:0::/docker/{ID}{ID}"), "\u{1b}:::".to_owned()], ""),
        ] {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(told(&lines, ""), expected, "{lines:?}");
        }
    }

    #[test]
    fn an_engine_speaks_for_what_the_host_does_not_show_and_its_silence_is_told() {
        for (stats, expected) in [
            (format!("{ID} 12.50% 1.5MiB / 2GiB"), "Some(12.5) 1572864"),
            (format!("{} 0.00% 12kB / 2GB", &ID[..12]), "Some(0.0) 12000"),
            (format!("{ID} -- 1B / 2GB"), "None 1"),
            (format!("{ID} 1% lots"), "what 1 container of "),
            ("0123 1% 1B / 2B".to_owned(), "what 1 container of "),
            ("\u{1b}[2J".to_owned(), "what 1 container of "),
        ] {
            let keys = format!(
                "unseen=docker {ID}\nunseen=docker {}\nstats=docker\n {stats}\n\n",
                "f".repeat(64)
            );
            assert_eq!(told(&[], &keys), expected, "{stats}");
        }
    }
}
