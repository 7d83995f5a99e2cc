//! `include`: whole projects from other files, each with its own folder and variables.

use serde_json::{Map, Value};

use super::RenderError;
use super::document::child;
use super::interpolate::Variables;
use super::load::{Loader, MAX_CHAIN};
use super::merge;
use super::paths::{Target, parent};

impl Loader<'_> {
    /// Adds the project that an entry of `include` names.
    pub(super) fn include(
        &mut self,
        project: &mut Map<String, Value>,
        item: Value,
        path: &str,
        base: &str,
        variables: &Variables,
    ) -> Result<(), RenderError> {
        let item = if item.is_string() { serde_json::json!({"path": item}) } else { item };
        let files = merge::list(item.get("path").cloned().unwrap_or_default());
        let [Value::String(file)] = files.as_slice() else {
            self.findings.refuse(
                path,
                None,
                "name exactly one file: `include: [{path: FILE}]`; merge several into one",
            );
            return Ok(());
        };
        let anchored = self.workspace.anchor(base, file);
        let Some((file, bytes)) = self.named(&anchored, path)? else { return Ok(()) };
        if self.including.contains(&file) || self.including.len() > MAX_CHAIN {
            self.findings.refuse(path, None, "files include each other in a circle or too deep; shorten the chain");
            return Ok(());
        }
        let folder = match item.get("project_directory").and_then(Value::as_str) {
            None => parent(&file).to_owned(),
            Some(folder) => {
                match self.folder(&self.workspace.anchor(base, folder), &child(path, "project_directory"))? {
                    Some(folder) => folder,
                    None => return Ok(()),
                }
            }
        };
        let variables = self.include_variables(&item, path, base, &folder, variables)?;
        let included = self.project(&file, &bytes, &folder, &variables)?;
        self.adopt(project, included, &file, path);
        Ok(())
    }

    fn folder(&mut self, anchored: &str, path: &str) -> Result<Option<String>, RenderError> {
        let unreadable = |source| RenderError::Unreadable { file: anchored.to_owned(), source };
        match self.workspace.locate(anchored).map_err(unreadable)? {
            Target::Inside(folder, _) | Target::Missing(folder) => Ok(Some(folder)),
            Target::Outside(why) => {
                self.findings.refuse(path, None, format!("`{anchored}` {why}; use a folder of the workspace"));
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
            if let Some((file, bytes)) = self.named(&anchored, &child(path, "env_file"))? {
                variables.extend(self.entries(&file, &bytes, outer)?);
            }
        }
        variables.extend(outer.clone());
        Ok(variables)
    }

    fn adopt(&mut self, project: &mut Map<String, Value>, included: Map<String, Value>, file: &str, path: &str) {
        for (section, content) in included {
            let Value::Object(content) = content else { continue };
            let slot = project.entry(section.clone()).or_insert_with(|| Value::Object(Map::new()));
            if slot.is_null() {
                *slot = Value::Object(Map::new());
            }
            let Some(slot) = slot.as_object_mut() else { continue };
            for (name, value) in content {
                match slot.get(&name) {
                    Some(existing) if *existing != value => {
                        self.findings.refuse(
                            path,
                            None,
                            format!("`{section}.{name}` of {file} is defined here as well; rename one of them"),
                        );
                    }
                    _ => drop(slot.insert(name, value)),
                }
            }
        }
    }
}
