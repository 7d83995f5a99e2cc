//! Links by which builds find their folders.
//!
//! Docker's builder keeps what it was sent under the last name of the folder, and takes a file of the same path, size and time for
//! the one that it has (seen with docker compose 2.26, not with 5.x or 1.29): the folder of each sandbox is called `workspace`,
//! and that file may be another one's, or an older one. A name that no build had before leaves it nothing to take.

use serde_json::{Map, json};
use uuid::Uuid;

use crate::domain::name::SandboxId;
use crate::extensions::compose_ssh::render::{BuildContext, Dialect, escape, normalize};

/// Folder of the links, beside the rendered file; of the same name in `up.sh`.
const FOLDER: &str = ".builds";

/// Links for one start.
#[derive(Debug, Default)]
pub(super) struct BuildLinks {
    /// Text of the compose file that has builds go by them; empty where there are none.
    pub(super) file: String,
    /// Each one's name and the folder that it leads to.
    pub(super) links: Vec<(String, String)>,
}

impl BuildLinks {
    /// Links for the builds of a rendered file, where the tool is one that needs them.
    pub(super) fn of(id: &SandboxId, contexts: &[BuildContext], dialect: Dialect) -> Self {
        if contexts.is_empty() || dialect != Dialect::Full {
            return Self::default();
        }
        let start = Uuid::new_v4().simple().to_string();
        let (mut services, mut links) = (Map::new(), Vec::new());
        for (number, context) in contexts.iter().enumerate() {
            let name = format!("{}-{start}-{number}", id.project());
            let mut build = json!({"context": format!("./{FOLDER}/{name}")});
            // One that is found from the folder upwards would be looked for from the link upwards.
            if let Some(file) = &context.dockerfile
                && normalize(file).starts_with("..")
            {
                build["dockerfile"] = normalize(&format!("{}/{file}", context.folder)).into();
            }
            services.insert(context.service.clone(), json!({"build": build}));
            links.push((name, context.folder.clone()));
        }
        let mut file = json!({"services": services});
        escape(&mut file);
        Self { file: file.to_string(), links }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn context(folder: &str, dockerfile: Option<&str>) -> BuildContext {
        BuildContext {
            service: "web".to_owned(),
            folder: folder.to_owned(),
            dockerfile: dockerfile.map(str::to_owned),
        }
    }

    fn links(context: BuildContext) -> (Value, BuildLinks) {
        let links = BuildLinks::of(&SandboxId::new("1"), &[context], Dialect::Full);
        (serde_json::from_str(&links.file).unwrap(), links)
    }

    #[test]
    fn each_start_builds_from_a_name_of_its_own() {
        let names = [0, 1].map(|_| {
            let (file, links) = links(context("/r/sbx-1/workspace/app", Some("D")));
            let [(name, folder)] = &links.links[..] else { panic!("{links:?}") };
            assert_eq!(folder, "/r/sbx-1/workspace/app");
            let build = json!({"context": format!("./.builds/{name}")});
            assert_eq!(file, json!({"services": {"web": {"build": build}}}));
            name.clone()
        });
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn a_dockerfile_above_its_folder_is_found_there() {
        let (file, _) = links(context("/r$x/sbx-1/workspace/a/b", Some("../../D")));
        let found = &file["services"]["web"]["build"]["dockerfile"];
        assert_eq!(found, "/r$$x/sbx-1/workspace/D");
    }

    #[test]
    fn what_builds_nothing_or_keeps_no_folders_has_none() {
        for (contexts, dialect) in
            [(vec![], Dialect::Full), (vec![context("/a", None)], Dialect::V1)]
        {
            let links = BuildLinks::of(&SandboxId::new("1"), &contexts, dialect);
            assert!(links.file.is_empty() && links.links.is_empty());
        }
    }
}
