//! From a workspace's compose file to the one that is started: interpolated, self-contained, labelled, and
//! without a way out of the sandbox that the profile does not permit.
//!
//! Pure: a workspace is read through `Tree`, nothing is written, no clock, no environment. The rendered file
//! lies beside the workspace and names every path absolutely, so no project directory has to be given to the
//! engine's compose, and the workspace's `.env` is not read a second time there.

mod adapt;
mod anchor;
mod attachments;
mod builds;
mod choose;
mod declared;
mod dialect;
mod document;
mod dotenv;
mod engine;
mod environment;
mod error;
mod findings;
mod host;
mod images;
mod include;
mod input;
mod interpolate;
mod keys;
mod labels;
mod lexical;
mod load;
mod merge;
mod mounts;
mod nameless;
mod networks;
mod order;
mod output;
mod pass;
mod paths;
mod policy;
mod ports;
mod project;
mod pulls;
mod refusal;
mod rendered;
mod resources;
mod services;
mod settle;
mod shapes;
#[cfg(test)]
mod tests;
mod tree;

use crate::domain::profile::Allowance;
use crate::domain::sandbox::Rewrite;

pub use dialect::Dialect;
pub use error::RenderError;

pub use builds::BuildContext;
pub use host::HostContext;
pub use input::RenderInput;
pub(super) use interpolate::escape;
pub(super) use lexical::normalize;
pub use output::Rendered;
pub(crate) use pulls::Pull;
pub use rendered::judge_rendered;
pub(crate) use services::ServicePlan;
pub use tree::{Entry, MemoryTree};
pub(crate) use tree::{LocalTree, Tree};

use findings::Findings;
use interpolate::Variables;
use load::Loader;
use pass::Pass;
use paths::Workspace;
use settle::{FOLDER, settle};

/// Renders the workspace's compose file; changes are in `rewrites` also where the file is refused.
///
/// # Errors
/// [`RenderError`]: the file cannot be read or understood, or it asks for what the profile does not permit.
pub fn render(
    tree: &dyn Tree,
    input: &RenderInput<'_>,
    rewrites: &mut Vec<Rewrite>,
) -> Result<Rendered, RenderError> {
    let mut findings = Findings::default();
    let workspace = Workspace::new(tree, input.workdir);
    let mut loader = Loader::new(
        &workspace,
        &mut findings,
        input.compose.allow.contains(&Allowance::BindMounts),
    );
    let outer = outer(input, &workspace);
    let mut variables = loader.environment_file(".env", &outer)?;
    variables.extend(outer.clone());
    let files = loader.choose(input.compose_file, &variables)?;
    let folder = lexical::parent(&files[0]).to_owned();
    if !folder.is_empty() {
        variables.extend(loader.environment_file(&format!("{folder}/.env"), &outer)?);
        variables.extend(outer);
    }
    let sources = loader.sources(&files)?;
    let project = loader.project(&sources, &folder, &variables)?;
    settle(project, Pass::new(input, loader, variables), rewrites)
}

/// Variables that win over those of every `.env`: the profile's, and what compose sets itself.
fn outer(input: &RenderInput<'_>, workspace: &Workspace<'_>) -> Variables {
    let mut outer = input.variables.clone();
    outer.insert("COMPOSE_PROJECT_NAME".to_owned(), format!("sbx-{}", input.sandbox_id));
    outer.entry(FOLDER.to_owned()).or_insert_with(|| workspace.absolute(""));
    outer
}
