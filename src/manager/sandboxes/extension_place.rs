//! Placement by an extension with a place of its own: no list of hosts and no limit is about that.

use crate::domain::compose_host::ComposeHost;
use crate::domain::error::Error;
use crate::domain::extension::SandboxExtension;
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::sandbox::{Route, Verdict};

/// Verdict on the place, and the route to it or why there is none.
pub(crate) async fn take_place(
    extension: &dyn SandboxExtension,
    profile: &Profile,
    place: HostName,
) -> (Verdict, Result<(Route, Option<ComposeHost>), Error>) {
    let asked = extension.ask_host(profile, &place, None).await;
    let reason = match &asked {
        Ok(_) => "up".to_owned(),
        Err(error) => error.sentence(),
    };
    let verdict = Verdict { host: place.clone(), ok: asked.is_ok(), reason };
    let verdicts = vec![verdict.clone()];
    let on = match asked {
        Ok(answer) => {
            let reason = format!("the place of {}", extension.id());
            let (remarks, candidates) = (Vec::new(), Vec::new());
            Ok((Route { host: place, reason, verdicts, remarks, candidates }, answer.compose))
        }
        Err(error) => {
            Err(error.detail("verdicts", serde_json::to_value(&verdicts).unwrap_or_default()))
        }
    };
    (verdict, on)
}
