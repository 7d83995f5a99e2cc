//! `include`: whole projects from other files, each with its own folder and variables.

use serde_json::{Map, Value};

use super::error::RenderError;
use super::interpolate::Variables;
use super::lexical::parent;
use super::load::{Loader, MAX_CHAIN};
use super::merge;
use super::paths::Target;
use crate::domain::problem::join;

impl Loader<'_> {
    /// The project that an entry of `include` names.
    pub(super) fn include(
        &mut self,
        item: Value,
        path: &str,
        base: &str,
        variables: &Variables,
    ) -> Result<Option<Map<String, Value>>, RenderError> {
        let item = if item.is_object() { item } else { serde_json::json!({"path": item}) };
        let files = merge::list(item.get("path").cloned().unwrap_or_default());
        let mut sources = Vec::new();
        for file in &files {
            let Some(file) = file.as_str() else { continue };
            let anchored = self.workspace.anchor(base, file);
            let Some(source) = self.named(&anchored, path)? else { return Ok(None) };
            sources.push(source);
        }
        if sources.is_empty() || sources.len() < files.len() {
            self.findings.refuse(
                path,
                None,
                "name a file, or several that lie over each other: `include: [{path: [FILE]}]`",
            );
            return Ok(None);
        }
        let circle = sources
            .iter()
            .any(|(file, _)| self.including.iter().flatten().any(|above| above == file));
        if circle || self.including.len() > MAX_CHAIN {
            self.findings.refuse(
                path,
                None,
                "files include each other in a circle or too deep; shorten the chain",
            );
            return Ok(None);
        }
        let folder = match item.get("project_directory").and_then(Value::as_str) {
            None => parent(&sources[0].0).to_owned(),
            Some(folder) => {
                match self.folder(
                    &self.workspace.anchor(base, folder),
                    &join(path, "project_directory"),
                )? {
                    Some(folder) => folder,
                    None => return Ok(None),
                }
            }
        };
        let variables = self.include_variables(&item, path, base, &folder, variables)?;
        let mut included = self.project(&sources, &folder, &variables)?;
        // What a file says of itself is not the project's.
        included.retain(|_, section| section.is_object());
        Ok(Some(included))
    }

    fn folder(&mut self, anchored: &str, path: &str) -> Result<Option<String>, RenderError> {
        let unreadable = |source| RenderError::Unreadable { file: anchored.to_owned(), source };
        match self.workspace.locate(anchored).map_err(unreadable)? {
            Target::Inside(folder, _) | Target::Missing(folder) => Ok(Some(folder)),
            Target::Outside(why) => {
                self.findings.refuse(
                    path,
                    None,
                    format!("`{anchored}` {why}; use a folder of the workspace"),
                );
                Ok(None)
            }
        }
    }

    /// The outer variables win over those of the included file's own environment files.
    fn include_variables(
        &mut self,
        item: &Value,
        path: &str,
        base: &str,
        folder: &str,
        outer: &Variables,
    ) -> Result<Variables, RenderError> {
        let mut variables = Variables::new();
        let listed = merge::list(item.get("env_file").cloned().unwrap_or_default());
        if listed.is_empty() {
            variables.extend(self.environment_file(
                &if folder.is_empty() { ".env".to_owned() } else { format!("{folder}/.env") },
                outer,
            )?);
        }
        for file in listed.iter().filter_map(Value::as_str) {
            let anchored = self.workspace.anchor(base, file);
            if let Some((file, bytes)) = self.named(&anchored, &join(path, "env_file"))? {
                variables.extend(self.entries(&file, &bytes, outer)?);
            }
        }
        variables.extend(outer.clone());
        Ok(variables)
    }
}
