//! `label`: sets labels and takes them away.

use super::args::LabelArgs;
use super::output::{Face, Outcome, Stop};
use super::sandboxes;
use super::values::{LabelChange, Pair};
use crate::client::{Error, LabelRequest};
use crate::domain::Code;

pub(super) async fn label(face: &mut Face<'_>, args: &LabelArgs) -> Outcome {
    let mut request = request(&args.changes)?;
    request.id = face.client.get(&args.id).await?.id.to_string();
    let labelled = face.client.label(request).await?;
    sandboxes::show(face, &labelled)?;
    Ok(0)
}

/// A key that is named twice is refused: whichever won, one of the two would be a silent mistake.
fn request(changes: &[LabelChange]) -> Result<LabelRequest, Stop> {
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
