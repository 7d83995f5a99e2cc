//! The workspace that all cases share, and the one place where the renderer is called.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sandboxer::domain::compose_host::{Subnet, TakenSubnet};
use sandboxer::domain::facts::{Flavour, Runtime};
use sandboxer::domain::profile::Compose;
use sandboxer::extensions::compose_ssh::render::{
    Dialect, Entry, HostContext, MemoryTree, RenderError, RenderInput, Rendered, judge_rendered,
    render,
};

/// The sandbox. Its id is also the beginning of other ids, since an id may hold `-`.
pub(crate) const ID: &str = "a1b2c3d4";
pub(crate) const OWNER: &str = "own-1";
pub(crate) const PROFILE: &str = "profile.compose-e2e";
/// The compose file of a case.
pub(crate) const FILE: &str = "docker-compose.yml";
/// Compose lays this one over it.
pub(crate) const OVERRIDE: &str = "docker-compose.override.yml";

/// Files of the workspace, beside the case's own.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("app/Dockerfile", "FROM scratch\nCOPY main.txt /main.txt\n"),
    ("app/alt.Dockerfile", "FROM scratch\n"),
    ("app/main.txt", "hello\n"),
    ("app/data/x", "x\n"),
    ("conf/app.conf", "a=1\n"),
    ("tok.txt", "token\n"),
    ("web.env", "A=1\nB=two words\n"),
    ("labels.env", "com.example.team=red\n"),
    (
        "bad.labels.env",
        "io.podman.compose.project=sbx-victim\ncom.docker.compose.project=sbx-victim\n\
         com.docker.stack.namespace=victim\nsandboxer.id=victim\nio.containers.autoupdate=registry\n",
    ),
    ("co:lon/x", "x\n"),
    ("com,ma/x", "x\n"),
    ("e=q/x", "x\n"),
    ("-dash/x", "x\n"),
];

/// Links of the workspace; `OUT` is a folder beside all sandboxes.
pub(crate) const LINKS: &[(&str, &str)] = &[
    ("in", "app"),
    ("out", "OUT"),
    ("app/climb", "../../../outside"),
    ("up", ".."),
    ("etc", "/etc"),
    ("app/loop", "loop"),
];

/// Where everything lies. Nothing has to exist unless a tool looks.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The folder of the sandbox: `compose.yaml` is in it.
    pub(crate) sandbox: String,
    pub(crate) workspace: String,
    /// Somebody else's folder.
    pub(crate) outside: String,
    /// Where a tool puts what it keeps for a moment.
    pub(crate) scratch: String,
}

impl World {
    pub(crate) fn at(root: &str) -> Self {
        let sandbox = format!("{root}/sandboxes/sbx-{ID}");
        Self {
            workspace: format!("{sandbox}/workspace"),
            sandbox,
            outside: format!("{root}/outside"),
            scratch: format!("{root}/scratch"),
        }
    }

    /// Text of the grammar with the places of this world.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("OUT/", &format!("{}/", self.outside))
            .replace("WS/", &format!("{}/", self.workspace))
    }

    /// The same tree as the renderer sees it, for tools.
    pub(crate) fn make(&self) -> std::io::Result<()> {
        for folder in [&self.workspace, &self.outside, &self.scratch] {
            fs::create_dir_all(folder)?;
        }
        fs::write(format!("{}/secret", self.outside), "outside\n")?;
        for (path, content) in FILES {
            let path = format!("{}/{path}", self.workspace);
            fs::create_dir_all(Path::new(&path).parent().unwrap())?;
            fs::write(path, content)?;
        }
        for (path, to) in LINKS {
            std::os::unix::fs::symlink(self.link(to), format!("{}/{path}", self.workspace))?;
        }
        Ok(())
    }

    fn link(&self, to: &str) -> String {
        if to == "OUT" { self.outside.clone() } else { to.to_owned() }
    }

    fn tree(&self, files: &BTreeMap<String, String>) -> MemoryTree {
        let mut tree = MemoryTree::default();
        for (path, content) in FILES {
            tree.insert(path, Entry::File, content.as_bytes());
        }
        for (path, to) in LINKS {
            tree.insert(path, Entry::Link(self.link(to)), "");
        }
        for (path, content) in files {
            tree.insert(path, Entry::File, self.fill(content));
        }
        tree
    }
}

/// Where the host has routes of its own.
pub(crate) const TAKEN: &[(&str, u8)] = &[("10.88.0.0", 16), ("192.168.1.0", 24)];

/// Which tool prints, and which engine reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) dialect: Dialect,
    /// The engine's version, as it says it.
    pub(crate) engine: &'static str,
}

impl Host {
    pub(crate) fn is_podman(self) -> bool {
        matches!(self.dialect, Dialect::Podman | Dialect::Narrow)
    }

    /// Host as it is known before anything is rendered.
    fn context(self) -> HostContext {
        let podman = self.is_podman();
        let (flavour, version) = match self.dialect {
            Dialect::Full => (Flavour::DockerComposeV2, "2.26.1"),
            Dialect::V1 => (Flavour::DockerComposeV1, "1.29.2"),
            Dialect::Podman => (Flavour::PodmanCompose, "1.6.0"),
            Dialect::Narrow => (Flavour::PodmanCompose, "1.0.3"),
        };
        let runtime = Runtime {
            flavour,
            version: version.to_owned(),
            command: vec!["compose".to_owned()],
            engine: if podman { "podman" } else { "docker" }.to_owned(),
            podman_behind: false,
            engine_version: Some(self.engine.to_owned()),
            engine_id: None,
            rootless: false,
            chosen: "detected".to_owned(),
        };
        let taken = TAKEN.iter().map(|(address, prefix)| TakenSubnet {
            subnet: Subnet::new(address.parse().unwrap(), *prefix).unwrap(),
            why: "the host has a route to it".to_owned(),
        });
        HostContext {
            dialect: Dialect::of(&runtime),
            podman: runtime.is_podman(),
            builds_escape: runtime.builds_escape(),
            taken: Some(taken.collect()),
        }
    }
}

pub(crate) const HOSTS: [Host; 5] = [
    Host { dialect: Dialect::Full, engine: "28.0.0" },
    Host { dialect: Dialect::V1, engine: "20.10.24" },
    Host { dialect: Dialect::Podman, engine: "5.4.2" },
    Host { dialect: Dialect::Podman, engine: "4.3.1" },
    Host { dialect: Dialect::Narrow, engine: "4.3.1" },
];

/// The only call of the renderer: no profile allows anything.
pub(crate) fn rendered(
    files: &BTreeMap<String, String>,
    world: &World,
    host: Host,
) -> Result<Rendered, RenderError> {
    with_input(world, host, |input| render(&world.tree(files), input, &mut Vec::new()))
}

/// Judgement on a file that it wrote itself, without the workspace.
pub(crate) fn rendered_again(
    text: &str,
    world: &World,
    host: Host,
) -> Result<Rendered, RenderError> {
    with_input(world, host, |input| judge_rendered(text, input))
}

fn with_input<T>(world: &World, host: Host, with: impl FnOnce(&RenderInput<'_>) -> T) -> T {
    with(&RenderInput {
        sandbox_id: ID,
        owner: OWNER,
        profile_id: PROFILE,
        workdir: &world.workspace,
        compose_file: None,
        compose: &Compose::default(),
        variables: &BTreeMap::new(),
        host: &host.context(),
    })
}
