//! A file that was rendered before, of a sandbox that is made again from the archive that it was rendered from.

use serde_json::{Map, Value};

use crate::domain::profile::{Allowance, Compose};

use super::pulls::{self, Pull};
use super::{HostContext, MemoryTree, Refusal, RenderError, Workspace, dialect};

/// What a host refuses of a rendered file, and the images that it needs. The archive is not opened for it: what came of it once
/// comes of it again, but for what is the host's.
///
/// # Errors
/// The file is none of ours, or the host refuses what is in it.
pub fn judge_rendered(text: &str, compose: &Compose, host: &HostContext) -> Result<Vec<Pull>, RenderError> {
    let json = text.split_once('\n').map_or(text, |(_, json)| json);
    let project: Value = serde_json::from_str(json).map_err(|error| RenderError::NotYaml {
        file: "compose.yaml".to_owned(),
        message: error.to_string(),
        place: None,
    })?;
    let services = project.get("services").and_then(Value::as_object);
    let services = services.into_iter().flatten().filter_map(|(name, service)| Some((name, service.as_object()?)));
    let mut refusals: Vec<Refusal> = Vec::new();
    for (name, service) in services {
        refusals.extend(builds(name, service, compose, host));
        refusals.extend(dialect::lacking(host.dialect, service).map(|(key, message)| Refusal {
            path: format!("services.{name}.{key}"),
            message,
            allow: None,
            place: None,
        }));
    }
    if !refusals.is_empty() {
        return Err(RenderError::Refused(refusals));
    }
    // Dockerfiles are in the archive: their base images are left to the build.
    let nothing = MemoryTree::default();
    pulls::of(&project, &Workspace::new(&nothing, "/"))
}

fn builds(name: &str, service: &Map<String, Value>, compose: &Compose, host: &HostContext) -> Option<Refusal> {
    let why = host.builds_escape.as_ref()?;
    (service.contains_key("build") && !compose.allow.contains(&Allowance::Builds)).then(|| Refusal {
        path: format!("services.{name}.build"),
        message: format!("{why}; use an image that is built elsewhere"),
        allow: Some(Allowance::Builds),
        place: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, PullPolicy};
    use super::*;

    #[test]
    fn a_rendered_file_is_judged_for_the_host_that_it_is_started_on_again() {
        let text = "# ours\n{\"services\": {\"a\": {\"image\": \"app:1\", \"pull_policy\": \"always\", \"post_start\": [{}]}, \"b\": {\"image\": \"sbx-1-b\", \"build\": {\"context\": \"/x\"}}}}";
        let compose = Compose::default();
        let pulls = judge_rendered(text, &compose, &HostContext::default()).unwrap();
        let pulls: Vec<_> = pulls.into_iter().map(|pull| (pull.image, pull.policy)).collect();
        assert_eq!(pulls, [("app:1".to_owned(), PullPolicy::Always)]);
        let old = HostContext {
            dialect: Dialect::Narrow,
            builds_escape: Some("podman 4.3.1 lets it".to_owned()),
            taken: None,
        };
        let Err(RenderError::Refused(refusals)) = judge_rendered(text, &compose, &old) else { panic!() };
        let paths: Vec<_> = refusals.iter().map(|refusal| refusal.path.as_str()).collect();
        assert_eq!(paths, ["services.a.post_start", "services.b.build"]);
        assert!(judge_rendered("# ours\n{", &compose, &old).is_err());
    }
}
