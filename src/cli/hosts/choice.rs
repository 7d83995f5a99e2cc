//! Which hosts are meant.

use crate::client::{Client, Error};
use crate::domain::host_view::HostState;

/// Each of these once; all that are known where none is named.
pub(in crate::cli) async fn wanted(
    client: &dyn Client,
    names: &[String],
) -> Result<Vec<String>, Error> {
    let mut names = names.to_vec();
    if names.is_empty() {
        let known = client.hosts().await?.into_iter();
        // Out of bounds means that not even a probe goes there.
        names = known
            .filter(|view| view.state != HostState::Forbidden)
            .map(|view| view.name.to_string())
            .collect();
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.to_ascii_lowercase()));
    Ok(names)
}
