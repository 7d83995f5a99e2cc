//! `snapshots export` and `import`: a snapshot to a file, and from one.

use std::io;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use super::super::args::{ExportArgs, ImportArgs};
use super::super::exec::READER_LEFT;
use super::super::input::{Pieces, pieces, unreadable};
use super::super::interrupt::awaited;
use super::super::output::paced::write_paced;
use super::super::output::{CliError, Context, Outcome, unwritten};
use super::super::progress::ProgressDisplay;
use super::view::show;
use crate::client::{Error, SnapshotImportRequest};
use crate::domain::Code;
use crate::domain::output::Source;
use crate::domain::snapshot::SnapshotRecord;
use crate::present::bytes;
use crate::present::snapshot::titled;

pub(super) async fn export(context: &mut Context<'_>, args: &ExportArgs) -> Outcome {
    let to_stdout = args.file.as_os_str() == "-";
    if to_stdout && context.options.json {
        return Err(
            Error::new(Code::Usage, "standard output has the archive: there is no --json").into()
        );
    }
    if to_stdout && context.io.terminals.stdout {
        return Err(Error::new(Code::Usage, "an archive is not for a terminal")
            .hint("name a file, or a pipe")
            .into());
    }
    let partial = partial(&args.file);
    if !to_stdout {
        refuse_existing(&args.file, &partial)?;
    }
    let record = context.client.snapshot_view(&args.snapshot).await?.record;
    if to_stdout {
        let pieces = context.client.export_snapshot(record.id.as_str()).await?;
        return to_pipe(context, pieces).await;
    }
    // Before any host is asked: that is where most of the time goes.
    let file = begin(&partial).await?;
    // From here on the partial file is this export's.
    let named = match to_file(context, &record, file, &partial).await {
        Ok(written) => name(&partial, &args.file).await.map(|()| written).map_err(CliError::from),
        Err(stop) => Err(stop),
    };
    let written = match named {
        Ok(written) => written,
        Err(stop) => {
            // Nothing of an export that did not come to its end stays.
            let _ = tokio::fs::remove_file(&partial).await;
            return Err(stop);
        }
    };
    settle(&args.file).await.map_err(|error| unwritable(&args.file, &error))?;
    let text = format!("{} is in {}, {}", titled(&record), args.file.display(), bytes(written));
    context.reply(&record, |context| context.say(&text))
}

/// `FILE.partial`.
fn partial(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

fn refuse_existing(file: &Path, partial: &Path) -> Result<(), Error> {
    if file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    if partial.symlink_metadata().is_ok() {
        return Err(begun(partial));
    }
    Ok(())
}

fn exists(file: &Path) -> Error {
    Error::new(Code::Conflict, format!("{} exists", file.display())).hint("name another file")
}

fn begun(partial: &Path) -> Error {
    let message =
        format!("{} exists: another export is writing it, or was killed", partial.display());
    Error::new(Code::Conflict, message).hint("if it was killed, remove that file")
}

/// A new file that nobody else reads: what is in a workspace may be secret.
async fn begin(partial: &Path) -> Result<File, Error> {
    match File::options().write(true).create_new(true).mode(0o600).open(partial).await {
        // Somebody else's, who began since it was looked for.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(begun(partial)),
        opened => opened.map_err(|error| unwritable(partial, &error)),
    }
}

async fn to_pipe(context: &mut Context<'_>, mut pieces: Pieces) -> Outcome {
    loop {
        let piece = tokio::select! {
            piece = pieces.next() => piece,
            Some(()) = context.io.interrupts.next() => return Err(cut_off().into()),
        };
        let Some(piece) = piece else { return Ok(0) };
        match write_paced(context.io, Source::Stdout, &piece?).await {
            Ok(true) => {}
            Ok(false) => return Err(cut_off().into()),
            // Half an archive is no success, whoever closed the pipe; and nobody is left to be told.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(READER_LEFT),
            Err(error) => return Err(unwritten(error).into()),
        }
    }
}

fn cut_off() -> Error {
    Error::new(Code::Cancelled, "cut off: what was written is no whole archive")
}

/// Writes the bytes to the file and to its disk; how many there were.
async fn to_file(
    context: &mut Context<'_>,
    record: &SnapshotRecord,
    mut file: File,
    path: &Path,
) -> Result<u64, CliError> {
    let failed = |error: io::Error| unwritable(path, &error);
    let mut pieces = context.client.export_snapshot(record.id.as_str()).await?;
    let mut display = ProgressDisplay::new(context);
    let mut written = 0;
    loop {
        let piece = tokio::select! {
            piece = pieces.next() => piece,
            Some(()) = context.io.interrupts.next() => {
                display.clear();
                return Err(Error::new(Code::Cancelled, "cancelled; nothing was written").into());
            }
        };
        let Some(piece) = piece else { break };
        let piece = piece.inspect_err(|_| display.clear())?;
        file.write_all(&piece).await.map_err(failed)?;
        written += piece.len() as u64;
        // What is written has a head too: the archive's size is nearly all of it.
        display.moved(context.io, record.id.as_str(), "export", written, record.archive.bytes);
    }
    display.clear();
    file.flush().await.map_err(failed)?;
    file.sync_all().await.map_err(failed)?;
    Ok(written)
}

/// Gives the whole file its name, unless something has it by now.
async fn name(partial: &Path, file: &Path) -> Result<(), Error> {
    use rustix::io::Errno;
    let named = match renameat_with(CWD, partial, CWD, file, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => return Err(exists(file)),
        // Not every file system can refuse; there another look must do.
        Err(Errno::INVAL | Errno::NOSYS) if file.symlink_metadata().is_ok() => {
            return Err(exists(file));
        }
        Err(Errno::INVAL | Errno::NOSYS) => tokio::fs::rename(partial, file).await,
        named => named.map_err(io::Error::from),
    };
    named.map_err(|error| unwritable(file, &error))
}

/// Writes down on the disk that it has its name.
async fn settle(file: &Path) -> io::Result<()> {
    let folder =
        file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).await?.sync_all().await
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    // A path that was ill chosen, or a disk that gave up on the way.
    let gave_up = matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    let code = if gave_up { Code::OperationFailed } else { Code::InvalidInput };
    Error::new(code, format!("{} cannot be written", path.display())).because(error.to_string())
}

pub(super) async fn import(context: &mut Context<'_>, args: &ImportArgs) -> Outcome {
    let source: Pieces = if args.file.as_os_str() == "-" {
        if context.io.terminals.stdin {
            return Err(Error::new(Code::Usage, "standard input is a terminal")
                .hint("name a file, or a pipe")
                .into());
        }
        (context.io.input)()
    } else {
        let shown = args.file.display().to_string();
        pieces(File::open(&args.file).await.map_err(|error| unreadable(&shown, &error))?, shown)
    };
    let request = SnapshotImportRequest { host: args.host.clone(), name: args.name.clone() };
    let taken = awaited(context, async |running| {
        running.finish(running.start_import(request, source).await?).await?.into_snapshot()
    });
    let taken = taken.await??;
    show(context, &taken)
}
