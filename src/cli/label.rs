//! `label`: sets labels and takes them away.

use super::args::LabelArgs;
use super::output::{CliError, Context, Outcome};
use super::sandboxes;
use super::values::{LabelChange, Pair};
use crate::client::{Error, LabelRequest};
use crate::domain::Code;

pub(super) async fn label(context: &mut Context<'_>, args: &LabelArgs) -> Outcome {
    let mut request = request(&args.changes)?;
    request.id = context.client.get(&args.id).await?.id.to_string();
    let labelled = context.client.label(request).await?;
    sandboxes::show(context, &labelled)
}

/// A key that is named twice is refused: whichever won, one of the two would be a silent mistake.
fn request(changes: &[LabelChange]) -> Result<LabelRequest, CliError> {
    let mut request = LabelRequest::default();
    for change in changes {
        let (LabelChange::Set(Pair { key, .. }) | LabelChange::Remove(key)) = change;
        if request.set.contains_key(key) || request.remove.contains(key) {
            return Err(Error::new(Code::Usage, format!("the label {key} is named twice")).into());
        }
        match change {
            LabelChange::Set(pair) => {
                drop(request.set.insert(pair.key.clone(), pair.value.clone()));
            }
            LabelChange::Remove(key) => drop(request.remove.insert(key.clone())),
        }
    }
    Ok(request)
}
