//! A file that was rendered before, of a sandbox that is made again from the archive that it was rendered from.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::profile::Allowance;
use crate::extensions::compose_ssh::mask::Masker;

use super::error::RenderError;
use super::findings::Findings;
use super::input::RenderInput;
use super::interpolate::{self, Variables};
use super::load::Loader;
use super::output::Rendered;
use super::pass::Pass;
use super::paths::Workspace;
use super::settle::settle;
use super::tree::{Entry, MemoryTree};

/// Judges a rendered file by the rules of today and for the host of today, as if somebody had written it. The archive is not
/// opened for it: what came of it once comes of it again, but for what the rules and the host now refuse.
///
/// # Errors
/// The file is none of ours, or something in it is refused.
pub fn judge_rendered(text: &str, input: &RenderInput<'_>) -> Result<Rendered, RenderError> {
    let json = text.split_once('\n').map_or(text, |(_, json)| json);
    let mut project: Map<String, Value> =
        serde_json::from_str(json).map_err(|error| RenderError::NotYaml {
            file: "compose.yaml".to_owned(),
            message: error.to_string(),
            place: None,
        })?;
    project.values_mut().for_each(interpolate::unescape);
    let tree = folders(&project, input.workdir);
    let workspace = Workspace::new(&tree, input.workdir);
    let mut findings = Findings::default();
    let loader = Loader::new(
        &workspace,
        &mut findings,
        input.compose.allow.contains(&Allowance::BindMounts),
    );
    settle(project, Pass::new(input, loader, Variables::new()), &mut Vec::new())
        .map_err(|error| masked(error, text))
}

/// The workspace as far as the file tells it: the folders that it builds from. All else is in the archive and counts as not
/// there, which is no reason to refuse it; Dockerfiles are left to the build.
fn folders(project: &Map<String, Value>, workdir: &str) -> MemoryTree {
    let mut tree = MemoryTree::default();
    let services =
        project.get("services").and_then(Value::as_object).into_iter().flat_map(Map::values);
    for build in services.filter_map(|service| service.get("build")) {
        let more = build
            .get("additional_contexts")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::values);
        for context in build.get("context").into_iter().chain(more).filter_map(Value::as_str) {
            if let Some(inside) =
                context.strip_prefix(workdir).and_then(|rest| rest.strip_prefix('/'))
            {
                tree.insert(inside, Entry::Directory, "");
            }
        }
    }
    tree
}

/// Without the secrets that the file holds: which variables they came from is not known any more.
fn masked(mut error: RenderError, text: &str) -> RenderError {
    if let (RenderError::Refused(refusals), Some(masker)) =
        (&mut error, Masker::of_file(text, &BTreeMap::new()))
    {
        for refusal in refusals {
            refusal.message = masker.text(&refusal.message);
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::super::pulls::PullPolicy;
    use super::super::{Dialect, HostContext};
    use super::*;
    use crate::domain::compose_host::{Subnet, TakenSubnet};
    use crate::domain::profile::Compose;

    fn judged(project: &Value, host: &HostContext) -> Result<Rendered, Vec<String>> {
        let input = RenderInput {
            sandbox_id: "1",
            owner: "own-1",
            profile_id: "p",
            workdir: "/x/sbx-1/workspace",
            compose_file: None,
            compose: &Compose::default(),
            variables: &BTreeMap::new(),
            host,
        };
        judge_rendered(&format!("# ours\n{project}"), &input).map_err(|error| match error {
            RenderError::Refused(refusals) => {
                refusals.into_iter().map(|refusal| refusal.path).collect()
            }
            other => vec![other.to_string()],
        })
    }

    #[test]
    fn a_rendered_file_is_judged_for_the_host_that_it_is_started_on_again() {
        let project = serde_json::json!({"services": {
            "a": {"image": "app:1", "pull_policy": "always", "post_start": [{"command": ["true"]}]},
            "b": {"image": "sbx-1-b", "build": {"context": "/x/sbx-1/workspace/app"}},
        }});
        let pulls: Vec<_> = judged(&project, &HostContext::default()).unwrap().pulls;
        let pulls: Vec<_> = pulls.into_iter().map(|pull| (pull.image, pull.policy)).collect();
        assert_eq!(pulls, [("app:1".to_owned(), PullPolicy::Always)]);
        let old = HostContext {
            dialect: Dialect::Narrow,
            podman: true,
            builds_escape: Some("podman 4.3.1 lets it".to_owned()),
            taken: None,
        };
        let paths = judged(&project, &old).unwrap_err();
        assert!(paths.contains(&"services.a.post_start".to_owned()), "{paths:?}");
        assert!(paths.contains(&"services.b.build".to_owned()), "{paths:?}");
        assert!(judged(&Value::Null, &old).is_err());
    }

    #[test]
    fn a_subnet_that_the_host_has_by_now_is_refused() {
        let subnet = "10.5.0.0/24";
        let project = serde_json::json!({
            "services": {"a": {"image": "app:1", "networks": ["n"]}},
            "networks": {"n": {"ipam": {"config": [{"subnet": subnet}]}}},
        });
        assert!(judged(&project, &HostContext::default()).unwrap().fixed_addresses);
        let taken = TakenSubnet {
            subnet: Subnet::parse(subnet).unwrap(),
            why: "somebody has it".to_owned(),
        };
        let host = HostContext { taken: Some(vec![taken]), ..HostContext::default() };
        assert_eq!(judged(&project, &host).unwrap_err(), ["networks.n.ipam.config[0].subnet"]);
    }

    #[test]
    fn what_an_older_version_let_through_is_refused() {
        let service = |body: Value| {
            let mut service = serde_json::json!({"image": "app:1"});
            service.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            serde_json::json!({"services": {"a": service}, "volumes": {"data": {}}})
        };
        for (body, path) in [
            (
                serde_json::json!({"volumes": ["/x/sbx-1/workspace/a:/a:ro,rw"]}),
                "services.a.volumes[0]",
            ),
            (
                serde_json::json!({"logging": {"options": {"path": "/etc/x"}}}),
                "services.a.logging.options.path",
            ),
            (serde_json::json!({"volumes": ["/x/sbx-1:/a"]}), "services.a.volumes[0]"),
            (
                serde_json::json!({"networks": {"default": {"driver_opts": {"a": "b"}}}}),
                "services.a.networks.default.driver_opts",
            ),
            (serde_json::json!({"privileged": true}), "services.a.privileged"),
        ] {
            let refused = judged(&service(body), &HostContext::default()).unwrap_err();
            assert_eq!(refused, [path]);
        }
        let network = serde_json::json!({
            "services": {"a": {"image": "app:1", "networks": ["n"]}},
            "networks": {"n": {"driver_opts": {"com.docker.network.bridge.name": "br0"}}},
        });
        let refused = judged(&network, &HostContext::default()).unwrap_err();
        assert_eq!(refused, ["networks.n.driver_opts.com.docker.network.bridge.name"]);
    }
}
