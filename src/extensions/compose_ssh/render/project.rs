//! From files to one project: laid over each other, each with what it includes and extends.

use serde_json::{Map, Value};

use super::anchor;
use super::error::RenderError;
use super::interpolate::Variables;
use super::lexical::parent;
use super::load::{Loader, MAX_CHAIN, Parsed, Services, section};
use super::merge;
use crate::domain::problem::join;

/// A file that was found: what it is called, and what is in it.
pub(super) type Source = (String, Vec<u8>);

/// Services on the way to the one that is resolved.
struct Extending<'a> {
    variables: &'a Variables,
    /// The project of the files below.
    below: &'a Map<String, Value>,
    /// File and name of each.
    trail: Vec<(String, String)>,
}

impl Loader<'_> {
    /// The project of files that lie over each other, without `extends` and `include`. Their paths begin in the folder `base`.
    pub(super) fn project(
        &mut self,
        sources: &[Source],
        base: &str,
        variables: &Variables,
    ) -> Result<Map<String, Value>, RenderError> {
        let mut project = Map::new();
        let first = self.documents.len();
        self.including.push(sources.iter().map(|(file, _)| file.clone()).collect());
        for (file, bytes) in sources {
            let Parsed { project: layer, replaced } = self.parse(file, bytes, variables, first)?;
            let layer = self.layer((file, layer, &replaced), base, variables, &project)?;
            merge::make_way(&mut project, &replaced);
            project = merge::projects(project, layer);
        }
        self.including.pop();
        // What makes a path of a word may stand in another file than the word.
        anchor::resources(&mut project, base, self.workspace);
        anchor::contexts(&mut project, base, self.workspace);
        Ok(project)
    }

    /// File with what it extends and includes; `below` is the project of those before it.
    fn layer(
        &mut self,
        (file, mut layer, replaced): (&str, Map<String, Value>, &[Vec<String>]),
        base: &str,
        variables: &Variables,
        below: &Map<String, Value>,
    ) -> Result<Map<String, Value>, RenderError> {
        let services = section(&mut layer, "services", self.findings);
        let names: Vec<String> = services.keys().cloned().collect();
        self.keep(file, services, replaced, base);
        let mut extending = Extending { variables, below, trail: Vec::new() };
        let mut resolved = Map::new();
        for name in names {
            if let Some(service) = self.service(file, &name, &mut extending)? {
                resolved.insert(name, Value::Object(service));
            }
        }
        layer.insert("services".to_owned(), Value::Object(resolved));
        if let Some(include) = layer.shift_remove("include") {
            for (index, item) in merge::list(include).into_iter().enumerate() {
                let path = format!("include[{index}]");
                let Some(mut included) = self.include(item, &path, base, variables)? else {
                    continue;
                };
                merge::make_way(&mut included, replaced);
                layer = merge::projects(included, layer);
            }
        }
        Ok(layer)
    }

    fn keep(
        &mut self,
        file: &str,
        mut services: Map<String, Value>,
        replaced: &[Vec<String>],
        base: &str,
    ) {
        for service in services.values_mut().filter_map(Value::as_object_mut) {
            anchor::service(service, base, self.workspace);
            if let Some(extends) = service.get_mut("extends").and_then(Value::as_object_mut)
                && let Some(Value::String(path)) = extends.get_mut("file")
            {
                *path = self.workspace.anchor(base, path);
            }
        }
        self.files.insert(file.to_owned(), Services { services, replaced: replaced.to_vec() });
    }

    /// Service with everything it extends below it.
    fn service(
        &mut self,
        file: &str,
        name: &str,
        extending: &mut Extending<'_>,
    ) -> Result<Option<Map<String, Value>>, RenderError> {
        let path = format!("services.{name}");
        let here = (file.to_owned(), name.to_owned());
        if extending.trail.contains(&here) || extending.trail.len() > MAX_CHAIN {
            self.findings.refuse(
                &path,
                None,
                "`extends` goes in a circle or through too many services; shorten the chain",
            );
            return Ok(None);
        }
        // Files that lie over each other are as one to an `extends` without a file; only docker-compose 1.29 takes it so.
        let found = self.files.get(file).and_then(|kept| kept.services.get(name));
        let joined = extending.trail.first().is_some_and(|(first, _)| first == file);
        let below = || {
            extending
                .below
                .get("services")
                .and_then(|services| services.get(name))
                .filter(|_| joined)
        };
        let mut service = match found.or_else(below) {
            Some(Value::Object(service)) => service.clone(),
            Some(Value::Null) => Map::new(),
            Some(_) => {
                self.findings.refuse(
                    &path,
                    None,
                    "a service is a mapping; give it at least `image:` or `build:`",
                );
                return Ok(None);
            }
            None => {
                let from = extending
                    .trail
                    .last()
                    .map_or(path.clone(), |(_, name)| format!("services.{name}.extends"));
                self.findings.refuse(
                    &from,
                    None,
                    format!("there is no service `{name}` in {file}"),
                );
                return Ok(None);
            }
        };
        self.count(file, merge::size(&service))?;
        let Some(extends) = service.shift_remove("extends") else { return Ok(Some(service)) };
        let extends_path = join(&path, "extends");
        let Some((other, parent_name)) =
            self.extended(&extends, file, &extends_path, extending.variables)?
        else {
            return Ok(Some(service));
        };
        extending.trail.push(here);
        let base = self.service(&other, &parent_name, extending)?;
        extending.trail.pop();
        let mut base = base.unwrap_or_default();
        if let Some(kept) = self.files.get(file) {
            merge::make_way_for(&mut base, name, &kept.replaced);
        }
        Ok(Some(merge::services(base, service)))
    }

    /// The file and the name that an `extends` means; the file is read if it was not yet.
    fn extended(
        &mut self,
        extends: &Value,
        file: &str,
        path: &str,
        variables: &Variables,
    ) -> Result<Option<(String, String)>, RenderError> {
        let name = extends.as_str().or_else(|| extends.get("service").and_then(Value::as_str));
        let Some(name) = name.map(str::to_owned) else {
            self.findings.refuse(
                path,
                None,
                "name the service to extend: `extends: {service: NAME}`",
            );
            return Ok(None);
        };
        let Some(anchored) = extends.get("file").and_then(Value::as_str) else {
            return Ok(Some((file.to_owned(), name)));
        };
        if let Some(known) = self.real(anchored)?.filter(|real| self.files.contains_key(real)) {
            return Ok(Some((known, name)));
        }
        let Some((other, bytes)) = self.named(anchored, &join(path, "file"))? else {
            return Ok(None);
        };
        let Parsed { mut project, replaced } =
            self.parse(&other, &bytes, variables, self.documents.len())?;
        let services = section(&mut project, "services", self.findings);
        self.keep(&other, services, &replaced, parent(&other));
        Ok(Some((other, name)))
    }
}
