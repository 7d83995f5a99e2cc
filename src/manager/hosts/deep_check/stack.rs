//! The compose stack of a check: one service with a volume, from an image that the host has.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::domain::error::{Code, Error};
use crate::domain::name::{HostName, OperationId};
use crate::manager::deps::Deps;
use crate::transport::probe::{self, ImageFound};

/// The label of what a check makes; its value is the check's operation. Only sandboxer itself can give it.
pub(crate) const LABEL: &str = "sandboxer.check";

pub(crate) const SERVICE: &str = "check";

pub(crate) const VOLUME_AT: &str = "/sandboxer-check";

/// A small image of the host that can run it.
pub(crate) async fn image(
    deps: &Deps,
    host: &HostName,
    operation: &OperationId,
    engine: &str,
) -> Result<ImageFound, Error> {
    let transport = deps.transports.open(host).await?;
    let (name, label) = (format!("sandboxer-{operation}"), format!("{LABEL}={operation}"));
    probe::small_image(transport.as_ref(), engine, &name, &label).await
}

/// The folder of this machine that a check's compose file is in while the stack is made.
pub(crate) fn folder(deps: &Deps, operation: &OperationId) -> PathBuf {
    deps.settings.temporary.join(format!("sandboxer-check-{operation}"))
}

/// Makes the folder with the compose file.
pub(crate) async fn write(folder: &Path, image: &str) -> Result<(), Error> {
    let written = async {
        if let Some(above) = folder.parent() {
            tokio::fs::create_dir_all(above).await?;
        }
        // A new folder alone will do: others may write where it is.
        tokio::fs::DirBuilder::new().mode(0o700).create(folder).await?;
        tokio::fs::write(folder.join("docker-compose.yml"), compose(image)).await
    };
    written.await.map_err(|error: std::io::Error| {
        Error::new(
            Code::OperationFailed,
            format!("the check's compose file cannot be written to {}", folder.display()),
        )
        .because(error)
        .hint("TMPDIR names another place")
    })
}

/// Takes the folder away again; none is fine.
pub(crate) async fn remove(folder: &Path) {
    match tokio::fs::remove_dir_all(folder).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), %error, "a check's compose file could not be removed");
        }
        Ok(()) | Err(_) => {}
    }
}

/// Whatever the image's entrypoint, user and health check are, this service runs a shell, as root. JSON is YAML in which
/// nothing has to be quoted twice.
fn compose(image: &str) -> String {
    let service = json!({
        "image": image,
        "pull_policy": "never",
        "entrypoint": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"],
        "command": [],
        "user": "0:0",
        "healthcheck": {"disable": true},
        "volumes": [format!("kept:{VOLUME_AT}")],
    });
    json!({"services": {SERVICE: service}, "volumes": {"kept": {}}}).to_string()
}
