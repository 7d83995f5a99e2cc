//! Images of services: names, and nothing that reads files of the host.

use crate::domain::profile::Allowance;

use super::pass::Pass;

impl Pass<'_> {
    /// Takes note of an image to pull. One that looks like an option would become one of podman's.
    pub(super) fn image(&mut self, image: &str, path: &str) {
        if self.is_image(image, path) {
            self.images.insert(image.to_owned());
        }
    }

    /// Refuses what is no image of a registry.
    pub(super) fn is_image(&mut self, image: &str, path: &str) -> bool {
        let plain = is_plain(image);
        if plain && has_transport(image) {
            self.findings().refuse(
                path,
                None,
                format!("`{image}` reads an image from the host's files or another store; write `name:tag`"),
            );
        } else if plain && is_built_for_a_sandbox(image) {
            return self.guard(
                Allowance::External,
                path,
                format!(
                    "`{image}` is an image that a sandbox built for itself; build it here, or name one of a registry"
                ),
            );
        } else if plain {
            return true;
        } else if image.is_empty() {
            self.findings().refuse(
                path,
                None,
                "the service has neither an image nor a build; add `image:` or `build:`",
            );
        } else {
            self.findings().refuse(
                path,
                None,
                format!("`{image}` is no name of an image; write `name:tag`"),
            );
        }
        false
    }
}

fn is_plain(image: &str) -> bool {
    let legal =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@' | '+');
    image.starts_with(|c: char| c.is_ascii_alphanumeric()) && image.chars().all(legal)
}

/// Is it called as [`Pass::image_of`] calls what a sandbox builds, whichever registry stands before it?
fn is_built_for_a_sandbox(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or(image);
    let repository = last.split([':', '@']).next().unwrap_or(last);
    repository.strip_prefix("sbx-").is_some_and(|rest| rest.ends_with("-built"))
}

/// Is it the name of an image, and nothing else that an engine would read?
pub(super) fn is_image(image: &str) -> bool {
    is_plain(image) && !has_transport(image)
}

/// Transports of podman's image names (containers-transports(5)): all but `docker://` read files of the host.
const TRANSPORTS: &[&str] = &[
    "atomic",
    "containers-storage",
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "docker-tarball",
    "oci",
    "oci-archive",
    "ostree",
    "sif",
    "tarball",
];

/// Is it more than `[host[:port]/]name[:tag][@digest]`?
fn has_transport(image: &str) -> bool {
    let (name, _) = image.split_once('@').unwrap_or((image, ""));
    let Some((head, rest)) = name.split_once(':') else { return false };
    let digits = rest.split('/').next().unwrap_or_default();
    let port =
        rest.contains('/') && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    // Behind a port there may be one more colon, before the tag; a tag has no slash.
    let tag = if port { rest.split_once('/').map_or("", |(_, path)| path) } else { rest };
    let odd = if port { tag.matches(':').count() > 1 } else { tag.contains(['/', ':']) };
    odd || (!head.contains('/') && !port && TRANSPORTS.contains(&head))
}
