//! Sizes of sandboxes' directories on a host: long work at idle priority.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lines::entries;
use crate::domain::error::{Code, Error};
use crate::domain::text::{clean_block, last_lines};
use crate::transport::{Command, Output, Source, Transport};

const SIZES_SH: &str =
    concat!(include_str!("../scripts/resolve.sh"), include_str!("../scripts/sizes.sh"));

/// Time that it may take. Directories are walked file by file, after everybody else.
const DEADLINE: Duration = Duration::from_mins(10);

/// Bytes on disk by directory.
pub(crate) type Sizes = BTreeMap<String, u64>;

/// Measures the directories of sandboxes below the workspace root and further ones.
///
/// Errors: the transport's; `operation_failed` where the script did not come to its end.
pub(crate) async fn sizes(transport: &dyn Transport, roots: &[String]) -> Result<Sizes, Error> {
    let command = Command::script(SIZES_SH).arg(&transport.spec().workspace_root).args(roots);
    let mut nobody = |_: Source, _: &[u8]| {};
    let output = transport.stream(&command, DEADLINE, &mut nobody).await?;
    read(&output)
}

fn read(output: &Output) -> Result<Sizes, Error> {
    let text = output.text();
    let entries = entries(&text);
    let ended = entries.last().is_some_and(|entry| entry.key == "measured");
    if !ended || !output.ok() || output.truncated {
        return Err(Error::new(Code::OperationFailed, "the sizes of directories cannot be read")
            .step("sizes")
            .detail("output", clean_block(&last_lines(&output.error_text(), 20))));
    }
    let mut sizes = Sizes::new();
    for entry in entries.iter().filter(|entry| entry.key == "root") {
        let root = entry.value.trim_end_matches('/');
        for (kibibytes, name) in entry.body.iter().filter_map(|line| line.split_once('\t')) {
            if let Ok(kibibytes) = kibibytes.parse::<u64>() {
                sizes.insert(format!("{root}/{name}"), kibibytes.saturating_mul(1024));
            }
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_whole_answer_alone() {
        let said = |text: &str| Output { stdout: text.as_bytes().to_vec(), ..Output::default() };
        let sizes = read(&said(
            "root=/r\n 12\tsbx-a\n 0\tsbx-b\n noise\n -1\tsbx-c\n\nroot=/\n 1\tsbx-d\n\nmeasured=yes\n",
        ))
        .unwrap();
        let expected = [("/r/sbx-a", 12_288), ("/r/sbx-b", 0), ("/sbx-d", 1024)];
        assert_eq!(sizes, expected.map(|(path, bytes)| (path.to_owned(), bytes)).into());
        assert_eq!(read(&said("measured=yes\n")).unwrap(), Sizes::new());
        for half in ["", "root=/r\n 12\tsbx-a\n", "measured=yes\nroot=/r\n"] {
            assert_eq!(read(&said(half)).unwrap_err().code, Code::OperationFailed, "{half:?}");
        }
    }
}
