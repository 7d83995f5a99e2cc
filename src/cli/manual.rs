//! What packagers install: completion scripts and manual pages, made from the clap tree.

use std::path::Path;

use super::args::{CompletionsArgs, ManArgs, command};
use super::output::{Face, Outcome, Stop};
use crate::client::Problem;
use crate::domain::Code;

pub(super) fn completions(face: &mut Face<'_, ()>, args: &CompletionsArgs) -> Outcome {
    no_json(face, "a completion script")?;
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "sandboxer", &mut script);
    face.io.stdout.write_all(&script)?;
    Ok(0)
}

pub(super) fn man(face: &mut Face<'_, ()>, args: &ManArgs) -> Outcome {
    no_json(face, "a manual page")?;
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command()).render(&mut page)?;
        face.io.stdout.write_all(&page)?;
        return Ok(0);
    };
    write_pages(dir).map_err(|error| {
        let message = format!("the manual pages cannot be written to {}", dir.display());
        let mut problem = Problem::new(Code::InvalidInput, message);
        problem.causes.push(error.to_string());
        problem
    })?;
    face.remark(&format!("the manual pages are in {}", face.look.clean(&dir.to_string_lossy(), 400)));
    Ok(0)
}

fn write_pages(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(command(), dir)
}

fn no_json(face: &Face<'_, ()>, what: &str) -> Result<(), Stop> {
    if face.look.json {
        return Err(Problem::new(Code::Usage, format!("{what} is no JSON")).hint("leave --json out").into());
    }
    Ok(())
}
