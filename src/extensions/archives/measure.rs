//! Room that a sandbox takes on its host, and that the host has for an archive of it.

use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::extension::Target;
use crate::domain::undo::Footprint;
use crate::extensions::workspace::script_output::{OutputBuffer, ScriptOutput};
use crate::extensions::workspace::{expected_of, failed, owners, root};
use crate::transport::{Command, Source, Transport};

const MEASURE_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/says.sh"),
    include_str!("../workspace/scripts/place.sh"),
    include_str!("../workspace/scripts/belonging.sh"),
    include_str!("scripts/measure.sh")
);

/// Limit of the walk over all files.
const LIMIT: Duration = Duration::from_mins(2);

/// Name of the step.
const STEP: &str = "measure";

/// Measures a sandbox, its host proved first.
///
/// Errors: `conflict` where its workspace is not there, `operation_failed` where a figure could not be read.
pub(crate) async fn measure(
    transport: &dyn Transport,
    target: &Target,
) -> Result<Footprint, Error> {
    let (host, id) = (&transport.spec().name, &target.id);
    let root = root(target, &transport.spec().workspace_root);
    let command = Command::script(MEASURE_SH)
        .arg(root)
        .arg(id.as_str())
        .arg(owners(target))
        .arg(expected_of(target))
        .arg(target.engine());
    let mut heard = OutputBuffer::default();
    // A session of its own: it may take long, and small commands wait for one another.
    let mut on_line = |source: Source, line: &[u8]| heard.line(source, line);
    let output =
        transport.stream(&command, LIMIT, &mut on_line).await.map_err(|error| error.step(STEP))?;
    let said = heard.said().map_err(|error| error.step(STEP))?;
    if said.value("error") == Some("gone") {
        let message = format!("the workspace of sandbox {id} is not on {host} any more");
        return Err(Error::new(Code::Conflict, message)
            .because(said.text("words").unwrap_or_default())
            .hint(format!("`sandboxer get {id}` shows what became of it"))
            .step(STEP));
    }
    said.check(STEP, transport, root)?;
    footprint(&said).ok_or_else(|| {
        let message = format!("how large sandbox {id} is, or what is free on {host}, was not told");
        failed(STEP, message, &output)
    })
}

/// Figures of a whole answer.
fn footprint(said: &ScriptOutput<'_>) -> Option<Footprint> {
    let kib = |key: &str| said.value(key)?.trim().parse::<u64>().ok();
    let (size, used, free) = (kib("size_kib")?, kib("used_kib")?, kib("free_kib")?);
    let all = used.checked_add(free).filter(|all| *all > 0)?;
    (said.value("measured") == Some("yes")).then(|| Footprint {
        bytes: size.saturating_mul(1024),
        free_bytes: free.saturating_mul(1024),
        disk_used_pct: used as f64 * 100.0 / all as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footprint_has_every_figure_or_is_none() {
        let whole = "machine=m\nused_kib=300\nfree_kib=100\nsize_kib=7\nmeasured=yes\n";
        let expected = Footprint { bytes: 7168, free_bytes: 102_400, disk_used_pct: 75.0 };
        assert_eq!(footprint(&ScriptOutput::read(whole)), Some(expected));
        for (from, to) in [
            ("size_kib=7", "size_kib="),
            ("size_kib=7", "size_kib=-7"),
            ("used_kib=300", "used_kib=lots"),
            ("free_kib=100\n", ""),
            ("used_kib=300\nfree_kib=100", "used_kib=0\nfree_kib=0"),
            ("measured=yes", "measured="),
            ("measured=yes\n", ""),
        ] {
            assert_eq!(
                footprint(&ScriptOutput::read(&whole.replace(from, to))),
                None,
                "{from} {to}"
            );
        }
    }
}
