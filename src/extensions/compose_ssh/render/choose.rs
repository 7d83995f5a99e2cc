//! Files that a project begins with: the input names them, or `COMPOSE_FILE` of the workspace's `.env`, or compose's own names do.

use super::error::RenderError;
use super::interpolate::Variables;
use super::lexical::{normalize, parent};
use super::load::{Found, Loader};
use super::project::Source;

/// Names compose looks for, best first.
const DEFAULT_NAMES: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];

/// Names of the file that it lays over the one with such a name, best first.
const OVERRIDE_NAMES: [&str; 4] = [
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
];

fn beside(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl Loader<'_> {
    /// Names of the files, the lowest first, as paths in the workspace.
    pub(super) fn choose(
        &mut self,
        input: Option<&str>,
        variables: &Variables,
    ) -> Result<Vec<String>, RenderError> {
        let of_dotenv = || variables.get("COMPOSE_FILE").filter(|files| !files.is_empty());
        let listed: Vec<&str> = match (input, of_dotenv()) {
            (Some(files), _) => files.split(',').map(str::trim).collect(),
            (None, Some(files)) => {
                let separator =
                    variables.get("COMPOSE_PATH_SEPARATOR").filter(|text| !text.is_empty());
                files.split(separator.map_or(":", String::as_str)).map(str::trim).collect()
            }
            (None, None) => return self.found(),
        };
        let files = listed.into_iter().map(inside).collect::<Result<Vec<_>, _>>()?;
        self.mention_unread(&files);
        Ok(files)
    }

    /// The files that compose finds.
    fn found(&mut self) -> Result<Vec<String>, RenderError> {
        let mut files = Vec::new();
        for names in [DEFAULT_NAMES, OVERRIDE_NAMES] {
            let there: Vec<&str> = names.into_iter().filter(|name| self.is_file(name)).collect();
            let Some((first, others)) = there.split_first() else { break };
            for other in others {
                self.findings.rewrite(
                    other,
                    format!("is not read: compose takes {first}, which is there too"),
                );
            }
            files.push((*first).to_owned());
        }
        if files.is_empty() {
            Err(RenderError::NoneFound(DEFAULT_NAMES.join(", ")))
        } else {
            Ok(files)
        }
    }

    /// Says that an override file is left alone, which compose reads only where no file is named.
    fn mention_unread(&mut self, files: &[String]) {
        let folder = parent(&files[0]);
        if !DEFAULT_NAMES.iter().any(|name| beside(folder, name) == files[0]) {
            return;
        }
        let unread = OVERRIDE_NAMES
            .iter()
            .map(|name| beside(folder, name))
            .filter(|name| !files.contains(name));
        let there: Vec<_> = unread.filter(|name| self.is_file(name)).collect();
        for name in there {
            self.findings
                .rewrite(&name, "is not read: where files are named, compose reads these alone");
        }
    }

    /// Reads the files that were chosen.
    pub(super) fn sources(&mut self, files: &[String]) -> Result<Vec<Source>, RenderError> {
        let read = |file: &String| match self.find(&self.workspace.absolute(file))? {
            Found::Bytes(_, bytes) => Ok((file.clone(), bytes)),
            Found::Refused(why) => Err(RenderError::Outside { file: file.clone(), why }),
            Found::Missing(_) => {
                Err(RenderError::Missing { near: self.nearest(parent(file)), file: file.clone() })
            }
        };
        files.iter().map(read).collect()
    }

    /// A compose file that does exist in the same folder.
    fn nearest(&self, folder: &str) -> Option<String> {
        DEFAULT_NAMES.iter().map(|name| beside(folder, name)).find(|name| self.is_file(name))
    }
}

fn inside(file: &str) -> Result<String, RenderError> {
    let plain = normalize(file);
    if file.starts_with('/')
        || plain.is_empty()
        || plain.starts_with("..")
        || file.chars().any(char::is_control)
    {
        return Err(RenderError::Outside {
            file: file.escape_debug().to_string(),
            why: "is no path inside the workspace".to_owned(),
        });
    }
    Ok(plain)
}
