//! Image of a host that can run a shell. The engine is asked for what is there; nothing is pulled.

use std::time::Duration;

use super::lines;
use crate::domain::error::{Code, Error};
use crate::domain::text::clean_block;
use crate::transport::{Command, Transport};

const IMAGES_SH: &str =
    concat!(include_str!("../scripts/runtime.sh"), include_str!("../scripts/images.sh"));

/// Images that are tried, from the smallest.
const TRIED: usize = 8;

/// Each try has a limit of its own, well below.
const DEADLINE: Duration = Duration::from_mins(4);

/// Image, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImageFound {
    /// The smallest that can, by name.
    Runs(String),
    /// None can, of so many that have a name.
    None(usize),
}

/// The smallest image of an engine that runs `sh`, `sleep` and `cat` as root, whatever its entrypoint is. Each is tried in a
/// container called `name` that carries `label`, has no network and is gone when it ends.
///
/// Errors: the transport's; `operation_failed` when the engine cannot say what it has.
pub(crate) async fn small_image(
    transport: &dyn Transport,
    engine: &str,
    name: &str,
    label: &str,
) -> Result<ImageFound, Error> {
    let command = Command::script(IMAGES_SH).args([engine, name, label]).arg(TRIED.to_string());
    // A session of its own: it may take long, and is ended on the host when nobody waits for it any more.
    let output = transport.stream(&command, DEADLINE, &mut |_, _| {}).await?;
    read(&output.text()).map_err(|words| {
        Error::new(Code::OperationFailed, format!("{engine} cannot say which images it has"))
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
        (failed, _) => Err(failed.map(lines::ScriptEntry::text).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// An engine with images as files: the size, then the names; `RUNS` are those that can run a shell.
    const ENGINE: &str = r#"#!/bin/sh
echo "$*" >>asked
case $1 in
  images) [ -z "$DEAD" ] || { echo "no daemon"; exit 1; }; cat ids; exit ;;
  image) shift 4; for id; do [ ! -e "$id" ] || cat "$id"; done; exit 0 ;;
  run) for word; do case " $RUNS " in *" $word "*) exit 0 ;; esac; done; exit 127 ;;
esac
"#;

    /// Finding of the script, and how often a container was run.
    fn asked(
        images: &[(&str, &str)],
        environment: &[(&str, &str)],
    ) -> (Result<ImageFound, String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let engine = folder.path().join("docker");
        std::fs::write(&engine, ENGINE).unwrap();
        std::fs::set_permissions(&engine, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ids: Vec<&str> = images.iter().map(|(id, _)| *id).collect();
        std::fs::write(folder.path().join("ids"), ids.join("\n")).unwrap();
        for (id, text) in images {
            std::fs::write(folder.path().join(id), format!("{text}\n")).unwrap();
        }
        let words =
            ["-c", IMAGES_SH, "sh", "./docker", "sandboxer-op-1", "sandboxer.check=op-1", "3"];
        let mut command = std::process::Command::new("sh");
        let ran = command
            .args(words)
            .envs(environment.to_vec())
            .current_dir(folder.path())
            .output()
            .unwrap();
        let log = std::fs::read_to_string(folder.path().join("asked")).unwrap_or_default();
        let runs = log.lines().filter(|line| line.starts_with("run --rm --pull=never")).count();
        (read(&String::from_utf8_lossy(&ran.stdout)), runs)
    }

    #[test]
    fn the_smallest_that_runs_a_shell_is_taken() {
        let images = [
            ("aa", "900 big:1"),
            ("bb", "50 scratch:1 scratch:2"),
            ("cc", "200 small:1"),
            ("dd", "10"),
            ("ee", "9 <none>:<none>"),
        ];
        assert_eq!(
            asked(&images, &[("RUNS", "big:1 small:1")]),
            (Ok(ImageFound::Runs("small:1".to_owned())), 2)
        );
        assert_eq!(asked(&images, &[("RUNS", "")]), (Ok(ImageFound::None(3)), 3));
        assert_eq!(asked(&[], &[]), (Ok(ImageFound::None(0)), 0));
        assert_eq!(asked(&images[3..], &[]), (Ok(ImageFound::None(0)), 0));
        assert_eq!(asked(&images, &[("DEAD", "yes")]), (Err("no daemon".to_owned()), 0));
        let four = [("aa", "1 a:1"), ("bb", "2 b:1"), ("cc", "3 c:1"), ("dd", "4 d:1")];
        assert_eq!(asked(&four, &[("RUNS", "d:1")]), (Ok(ImageFound::None(4)), 3));
    }

    #[test]
    fn an_image_none_or_the_engines_words() {
        assert_eq!(
            read("had=3\nimage=localhost/a:1\n"),
            Ok(ImageFound::Runs("localhost/a:1".to_owned()))
        );
        assert_eq!(read("had=3\n"), Ok(ImageFound::None(3)));
        assert_eq!(read("had=0\n"), Ok(ImageFound::None(0)));
        assert_eq!(
            read("failed=\n Cannot connect\n image=x\n"),
            Err("Cannot connect\nimage=x".to_owned())
        );
        assert_eq!(read(""), Err(String::new()));
    }
}
