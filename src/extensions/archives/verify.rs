//! Whether an archive is still what it was: read whole on its host, or as it passes by here.

use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::domain::archive::ArchivePlace;
use crate::domain::error::{Code, Error};
use crate::domain::output::Source;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::snapshot::{ArchiveFacts, ArchiveFormat};
use crate::domain::text::hex;
use crate::extensions::archives::archive_dir::{self, about, altered, archive_script};
use crate::extensions::archives::stream::unpacked;
use crate::extensions::workspace::failed;
use crate::extensions::workspace::script_output::{OutputBuffer, ScriptOutput};
use crate::transport::Transport;

const VERIFY_SH: &str = archive_script!("archive_verify.sh");

/// How long an archive may be read.
const LIMIT: Duration = Duration::from_hours(12);

/// How much of an archive's content is judged at once; bytes.
const PIECE: usize = 64 * 1024;

/// Reads an archive whole, on its host, and compares it, and the manifest beside it, with what is known of it.
pub(super) async fn verify(
    transport: &dyn Transport,
    place: &ArchivePlace,
    facts: &ArchiveFacts,
    reporter: &dyn Reporter,
) -> Result<(), Error> {
    let format = archive_dir::format(facts)?;
    let report = Report { stage: "verify", of: facts.bytes, ..Report::default() };
    reporter.report(report.clone());
    archive_dir::ensure_sealed(transport, place, facts).await?;
    let mut heard = OutputBuffer::default();
    let mut on_line = |source: Source, line: &[u8]| {
        heard.line(source, line);
        let at = line.strip_prefix(b"at=").filter(|_| source == Source::Stdout);
        if let Some(at) = at.and_then(|at| str::from_utf8(at).ok()?.trim().parse().ok()) {
            reporter.report(Report { done: Some(at), bytes: Some(at), ..report.clone() });
        }
    };
    let command = about(VERIFY_SH, transport, place).arg(format.file_name());
    let output = transport
        .stream(&command, LIMIT, &mut on_line)
        .await
        .map_err(|error| error.step("verify"))?;
    let said = heard.said().map_err(|error| error.step("verify"))?;
    archive_dir::check(&said, "verify", transport, place)?;
    if said.value("read") != Some("yes") {
        let message = format!(
            "the archive of snapshot {} on {} was not read to its end",
            place.id, place.host
        );
        return Err(failed("verify", message, &output));
    }
    match verdict(&said, facts) {
        Verdict::Same => Ok(()),
        Verdict::Differs(differs, why) => {
            Err(altered(differs, transport, place).because(why).step("verify"))
        }
        Verdict::Unread(why) => {
            let message = format!(
                "the archive of snapshot {} on {} could not be read whole",
                place.id, place.host
            );
            let error = Error::new(Code::OperationFailed, message).because(why);
            Err(error.hint("nothing is known of it now; try again").step("verify"))
        }
    }
}

/// Verdict of a reading.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    /// A word and a sentence.
    Differs(&'static str, String),
    /// Something was in the way: nothing is known of the archive. Why.
    Unread(String),
}

/// Comparison of what was found with what is known. What was not read is no difference.
fn verdict(said: &ScriptOutput<'_>, facts: &ArchiveFacts) -> Verdict {
    let Some(is) = said.value("size").and_then(|text| text.parse::<u64>().ok()) else {
        return Verdict::Unread("its host does not say how large it is".to_owned());
    };
    if let Some(was) = facts.bytes.filter(|was| is != *was) {
        let differs = if is < was { "truncated" } else { "size" };
        return Verdict::Differs(differs, format!("it has {is} bytes and had {was}"));
    }
    let words = said.text("words").filter(|words| !words.is_empty());
    for program in ["unpack", "tee", "tar"] {
        let Some(status) = said.value(program) else { continue };
        if program == "tee" || was_in_the_way(status, words.as_deref().unwrap_or_default()) {
            return Verdict::Unread(
                words.unwrap_or_else(|| format!("{program} ended with status {status}")),
            );
        }
    }
    if said.value("unpack").is_some() {
        return Verdict::Differs(
            "content",
            words.unwrap_or_else(|| "it cannot be unpacked".to_owned()),
        );
    }
    let Some(sum) = said.hash("sum") else {
        return Verdict::Unread(
            words.unwrap_or_else(|| "the SHA-256 of its content could not be computed".to_owned()),
        );
    };
    if let Some((differs, why)) = other_hash(&sum, facts) {
        return Verdict::Differs(differs, why);
    }
    match said.value("tar") {
        Some(_) => {
            Verdict::Differs("content", words.unwrap_or_else(|| "tar cannot read it".to_owned()))
        }
        None => Verdict::Same,
    }
}

/// Whether a program that failed was ended, is none, or could not read: then it says nothing of what it was to read. 141 is a
/// reader that wanted no more.
pub(super) fn was_in_the_way(status: &str, words: &str) -> bool {
    let Ok(status) = status.parse::<i32>() else { return true };
    let system = [
        "nput/output error",
        "ermission denied",
        "ead error",
        "annot allocate memory",
        "tale file handle",
        "No space left",
    ];
    matches!(status, 126 | 127)
        || status > 128
        || system.iter().any(|words_of| words.contains(words_of))
}

fn other_hash(sum: &str, facts: &ArchiveFacts) -> Option<(&'static str, String)> {
    let was = facts.sha256.as_deref().unwrap_or("not known");
    (sum != was).then(|| ("hash", format!("the SHA-256 of the tar inside is {sum} and was {was}")))
}

/// Unpacks an archive that passes by, and compares what is in it with what is known of it; nothing of it is kept. What was
/// found that differs: a word and a sentence.
pub(super) async fn judge(
    packed: impl AsyncRead + Send + Unpin,
    format: &ArchiveFormat,
    facts: &ArchiveFacts,
) -> Option<(&'static str, String)> {
    let mut content = unpacked(packed, format);
    let (mut hash, mut seen) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let length = match content.read(&mut piece).await {
            Ok(0) => return other_hash(&hex(&hash.finalize()), facts),
            Ok(length) => length,
            Err(error) => return Some(("content", error.to_string())),
        };
        seen += length as u64;
        if facts.content_bytes.is_some_and(|was| seen > was) {
            return Some(("content", "there is more in it than there was".to_owned()));
        }
        hash.update(&piece[..length]);
        // What unpacks into a thousand times its size would keep this thread for seconds.
        tokio::task::consume_budget().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_is_no_difference() {
        let (sum, other) = ("a".repeat(64), "b".repeat(64));
        let facts =
            ArchiveFacts { bytes: Some(9), sha256: Some(sum.clone()), ..ArchiveFacts::default() };
        let words = |text: &str| format!("words=\n {text}\n");
        for (text, expected) in [
            (format!("size=9\nsum={sum}\n"), "same"),
            (format!("size=9\nsum={other}\n"), "hash"),
            (format!("size=8\nsum={sum}\n"), "truncated"),
            (format!("size=10\nsum={sum}\n"), "size"),
            (
                format!("size=9\nunpack=1\nsum={other}\n{}", words("zstd: unsupported format")),
                "content",
            ),
            (
                format!(
                    "size=9\ntar=2\nsum={sum}\n{}",
                    words("tar: this does not look like a tar archive")
                ),
                "content",
            ),
            // Not read, for all that is known.
            (format!("sum={sum}\n"), "unread"),
            (format!("size=\nsum={sum}\n"), "unread"),
            ("size=9\n".to_owned(), "unread"),
            ("size=9\nsum=\n".to_owned(), "unread"),
            (format!("size=9\nsum={}\n", &sum[..63]), "unread"),
            (format!("size=9\nunpack=137\nsum={other}\n"), "unread"),
            (
                format!(
                    "size=9\nunpack=1\nsum={other}\n{}",
                    words("gzip: archive.tar.gz: Input/output error")
                ),
                "unread",
            ),
            (format!("size=9\ntar=127\nsum={sum}\n{}", words("sh: tar: not found")), "unread"),
            (format!("size=9\ntee=1\nsum={other}\n"), "unread"),
        ] {
            let found = match verdict(&ScriptOutput::read(&text), &facts) {
                Verdict::Same => "same",
                Verdict::Differs(word, _) => word,
                Verdict::Unread(_) => "unread",
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
