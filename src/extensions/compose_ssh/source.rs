//! The repository on this side: what would be transferred, and what its compose file asks for.

use std::collections::BTreeMap;

use crate::domain::error::Error;
use crate::domain::extension::{Preview, ProvisionRequest, Refusal};
use crate::domain::profile::Profile;
use crate::domain::sandbox::Rewrite;
use crate::extensions::compose_ssh::deps::workspace_only;
use crate::extensions::compose_ssh::render::{
    self, Dialect, HostContext, LocalTree, RenderError, RenderInput, Rendered, Tree,
};
use crate::extensions::workspace::repo;

/// The input that names the compose file in it.
const COMPOSE_FILE: &str = "compose_file";

/// Stands for the workspace on the host while nothing is there yet; no compose file names it.
pub(super) const PREVIEW_WORKDIR: &str = "/sandboxer.preview/workspace";

/// Preview of what provision would do and refuse, without touching a host.
pub(super) async fn preview(request: &ProvisionRequest) -> Result<Preview, Error> {
    let mut preview = repo::preview(request).await?;
    if workspace_only(&request.profile) {
        return Ok(preview);
    }
    let mut rendering = render(request, PREVIEW_WORKDIR, &HostContext::default()).await?;
    // What one compose would rewrite says nothing of a host that has another.
    for dialect in [Dialect::V1, Dialect::Podman, Dialect::Narrow] {
        let host = HostContext { dialect, ..HostContext::default() };
        let there = render(request, PREVIEW_WORKDIR, &host).await?;
        rendering.rewrites.retain(|rewrite| there.rewrites.contains(rewrite));
    }
    note(rendering, &mut preview);
    Ok(preview)
}

/// Preview of a rendering for [`PREVIEW_WORKDIR`].
pub(super) fn note(rendering: Rendering, preview: &mut Preview) {
    preview.rewrites = rendering.rewrites;
    match rendering.result {
        Ok(rendered) => {
            preview.services =
                rendered.services.iter().map(|service| service.name.clone()).collect();
        }
        Err(error) => preview.refusals.extend(refusals(&error).into_iter().map(as_written)),
    }
}

/// A path outside the workspace reads as one: `../other`, not as below a directory that nobody made.
fn as_written(refusal: Refusal) -> Refusal {
    let (outside, _) = PREVIEW_WORKDIR.rsplit_once('/').unwrap_or_default();
    let message = refusal.message.replace(PREVIEW_WORKDIR, ".").replace(outside, "..");
    Refusal { message, ..refusal }
}

/// A repository's compose file, rendered or refused.
pub(super) struct Rendering {
    /// The rendered file, or what is wrong with it.
    pub(super) result: Result<Rendered, RenderError>,
    /// Changes, also where the file is refused.
    pub(super) rewrites: Vec<Rewrite>,
}

/// Renders the repository's compose file for a workspace at `workdir` on the host.
pub(super) async fn render(
    request: &ProvisionRequest,
    workdir: &str,
    host: &HostContext,
) -> Result<Rendering, Error> {
    let Some(source) = repo::repository(&request.inputs) else {
        return Err(Error::invalid_input(repo::REPO, "this profile needs the input `repo`"));
    };
    let (request, workdir, host) = (request.clone(), workdir.to_owned(), host.clone());
    // A tree on a slow disk must not hold a runtime's thread.
    let work = move || {
        let mut rewrites = Vec::new();
        let result = render_tree(&LocalTree::new(source), &request, &workdir, &host, &mut rewrites);
        Rendering { result, rewrites }
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::internal("the compose file's renderer ended by a error").because(error)
    })
}

/// Renders the compose file of a tree, wherever that is, for a workspace at `workdir` on the host.
pub(super) fn render_tree(
    tree: &dyn Tree,
    request: &ProvisionRequest,
    workdir: &str,
    host: &HostContext,
    rewrites: &mut Vec<Rewrite>,
) -> Result<Rendered, RenderError> {
    let variables = variables(&request.profile);
    render::render(tree, &input(request, workdir, &variables, host), rewrites)
}

/// Judges a file that was rendered for this request before, for a workspace at `workdir` on the host.
pub(super) fn judge_rendered(
    text: &str,
    request: &ProvisionRequest,
    workdir: &str,
    host: &HostContext,
) -> Result<Rendered, RenderError> {
    render::judge_rendered(text, &input(request, workdir, &BTreeMap::new(), host))
}

fn input<'a>(
    request: &'a ProvisionRequest,
    workdir: &'a str,
    variables: &'a BTreeMap<String, String>,
    host: &'a HostContext,
) -> RenderInput<'a> {
    RenderInput {
        sandbox_id: request.id.as_str(),
        owner: request.owner.owner.as_str(),
        profile_id: request.profile.id.as_str(),
        workdir,
        compose_file: request.inputs.get(COMPOSE_FILE).map(String::as_str),
        compose: &request.profile.compose,
        variables,
        host,
    }
}

/// A renderer's error as refusals: all of them, each with its place.
pub(super) fn refusals(error: &RenderError) -> Vec<Refusal> {
    match error {
        RenderError::Refused(list) => list.iter().cloned().map(Refusal::from).collect(),
        other => {
            let cause = std::error::Error::source(other)
                .map(|cause| format!(": {cause}"))
                .unwrap_or_default();
            vec![Refusal {
                path: COMPOSE_FILE.to_owned(),
                message: format!("{other}{cause}"),
                allow: None,
            }]
        }
    }
}

/// The variables that a profile gives its compose file.
pub(super) fn variables(profile: &Profile) -> BTreeMap<String, String> {
    let Some(map) = profile.config["environment"].as_object() else { return BTreeMap::new() };
    map.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
