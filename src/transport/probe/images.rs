//! Which image of a host can run a shell. The engine is asked for what is there; nothing is pulled.

use std::time::Duration;

use super::lines;
use crate::domain::fault::{Code, Fault};
use crate::domain::text::clean_block;
use crate::transport::{Command, Transport};

const IMAGES_SH: &str = concat!(include_str!("../scripts/runtime.sh"), include_str!("../scripts/images.sh"));

/// Images that are tried, from the smallest.
const TRIED: usize = 8;

/// Each try has a limit of its own, well below.
const DEADLINE: Duration = Duration::from_mins(4);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageFound {
    /// The smallest that can, by name.
    Runs(String),
    /// None can, of so many that have a name.
    None(usize),
}

/// The smallest image of an engine that runs `sh`, `sleep` and `cat` as root, whatever its entrypoint is. Each is tried in a
/// container called `name` that carries `label`, has no network and is gone when it ends.
///
/// Errors: the transport's; `operation_failed` when the engine cannot say what it has.
pub async fn small_image(
    transport: &dyn Transport,
    engine: &str,
    name: &str,
    label: &str,
) -> Result<ImageFound, Fault> {
    let command = Command::script(IMAGES_SH).args([engine, name, label]).arg(TRIED.to_string());
    // A session of its own: it may take long, and is ended on the host when nobody waits for it any more.
    let output = transport.stream(&command, DEADLINE, &mut |_, _| {}).await?;
    read(&output.text()).map_err(|words| {
        Fault::new(Code::OperationFailed, format!("{engine} cannot say which images it has"))
            .because(clean_block(if words.is_empty() { "it said nothing" } else { &words }))
    })
}

fn read(text: &str) -> Result<ImageFound, String> {
    let entries = lines::entries(text);
    let of = |key: &str| entries.iter().find(|entry| entry.key == key);
    if let Some(image) = of("image") {
        return Ok(ImageFound::Runs(image.value.to_owned()));
    }
    match (of("failed"), of("had").and_then(|had| had.value.parse().ok())) {
        (None, Some(had)) => Ok(ImageFound::None(had)),
        (failed, _) => Err(failed.map(lines::Entry::text).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_none_or_the_engines_words() {
        assert_eq!(read("had=3\nimage=localhost/a:1\n"), Ok(ImageFound::Runs("localhost/a:1".to_owned())));
        assert_eq!(read("had=3\n"), Ok(ImageFound::None(3)));
        assert_eq!(read("had=0\n"), Ok(ImageFound::None(0)));
        assert_eq!(read("failed=\n Cannot connect\n image=x\n"), Err("Cannot connect\nimage=x".to_owned()));
        assert_eq!(read(""), Err(String::new()));
    }
}
