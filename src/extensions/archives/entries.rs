//! Listings by `tar`, line by line: of an archive (`tar -tvv`), or of a workspace that it reads (`tar -cvv`).

use crate::domain::archive::{EntryKind, TreeEntry};

/// Options that make GNU tar's listing one that can be read back: times to the second and no less, no blank in a name that is not
/// escaped, one entry a line. It takes `LC_ALL=C` too, and `TZ=UTC0`, since a listing does not say in whose zone it tells a time.
pub(crate) const GNU_LISTING: [&str; 3] =
    ["--full-time", "--quoting-style=escape", "--quote-chars= "];

/// Which tar wrote a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// GNU's, with [`GNU_LISTING`].
    Gnu,
    /// busybox's: names as they are, a line break in one as `?`.
    Busybox,
}

/// Entry of a line of a listing, if it is one that an archive may have: no socket and no device node.
pub(crate) fn entry(line: &[u8], style: Style) -> Option<TreeEntry> {
    let mut rest = line;
    let mode = word(&mut rest)?;
    let (kind, mode) = mode.split_first()?;
    let owner = word(&mut rest)?;
    let size = word(&mut rest)?;
    let (date, time) = (word(&mut rest)?, word(&mut rest)?);
    // GNU pads a fraction that ends in zeros; what follows is one blank and the name.
    let name = match style {
        Style::Gnu => rest.trim_ascii_start(),
        Style::Busybox => rest.strip_prefix(b" ")?,
    };
    let (name, target, hard) = split(name, *kind, style);
    let kind = match kind {
        _ if hard => EntryKind::HardLink,
        b'-' | b'C' => EntryKind::File,
        b'd' => EntryKind::Directory,
        b'l' => EntryKind::Symlink,
        b'p' => EntryKind::Fifo,
        _ => return None,
    };
    let name = name.strip_suffix(b"/").filter(|rest| !rest.is_empty()).unwrap_or(&name);
    Some(TreeEntry {
        path: shown(name),
        kind,
        mode: String::from_utf8_lossy(mode).into_owned(),
        owner: String::from_utf8_lossy(owner).into_owned(),
        size: str::from_utf8(size).ok()?.parse().ok()?,
        modified: format!(
            "{}T{}Z",
            str::from_utf8(date).ok()?,
            str::from_utf8(time.get(..8)?).ok()?
        ),
        target: target.map(|target| shown(&target)),
    })
}

/// The next word, and blanks before it, off the front.
fn word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let text = rest.trim_ascii_start();
    let end = text.iter().position(|byte| *byte == b' ')?;
    let (word, after) = text.split_at(end);
    *rest = after;
    Some(word)
}

/// Name and target, and whether it is a hard link.
fn split(text: &[u8], kind: u8, style: Style) -> (Vec<u8>, Option<Vec<u8>>, bool) {
    let at = |mark: &[u8]| {
        text.windows(mark.len()).position(|window| window == mark).map(|at| (at, at + mark.len()))
    };
    let parts = |(end, begin): (usize, usize)| (&text[..end], &text[begin..]);
    match style {
        // Blanks of names are escaped, so the first mark is no part of one.
        Style::Gnu => {
            let hard = kind == b'h';
            let mark: &[u8] = if hard { b" link to " } else { b" -> " };
            match at(mark).filter(|_| hard || kind == b'l').map(parts) {
                Some((name, target)) => (plain(name), Some(plain(target)), hard),
                None => (plain(text), None, hard),
            }
        }
        // It marks both kinds of links alike and escapes nothing. A hard link points to a member of the archive.
        Style::Busybox => match at(b" -> ").map(parts) {
            Some((name, target)) if kind == b'l' => (name.to_vec(), Some(target.to_vec()), false),
            Some((name, target))
                if kind == b'-'
                    && (target.starts_with(b"workspace/") || target.starts_with(b"volumes/")) =>
            {
                (name.to_vec(), Some(target.to_vec()), true)
            }
            _ => (text.to_vec(), None, false),
        },
    }
}

/// The bytes that GNU's `escape` style stands for.
fn plain(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let octal: Vec<u8> =
            rest.iter().take(3).copied().take_while(|byte| (b'0'..=b'7').contains(byte)).collect();
        if octal.len() == 3 {
            let value = octal.iter().fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
            bytes.push(u8::try_from(value).unwrap_or(b'?'));
            rest = &rest[3..];
            continue;
        }
        let [letter, tail @ ..] = rest else {
            bytes.push(b'\\');
            break;
        };
        rest = tail;
        bytes.push(match letter {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'?' => 127,
            other => *other,
        });
    }
    bytes
}

/// A name as text: what is no UTF-8, a control character or a backslash as `\NNN`.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let escape = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            text.push('\\');
            for shift in [6, 3, 0] {
                text.push(char::from(b'0' + (byte >> shift & 7)));
            }
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || c == '\\' {
                escape(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(c);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str, style: Style) -> TreeEntry {
        entry(line.as_bytes(), style).unwrap_or_else(|| panic!("{line}"))
    }

    #[test]
    fn a_gnu_listing_is_read_whatever_is_in_a_name() {
        let file = one(
            "-rw-r--r-- self/self         3 2026-11-28 07:34:08.41052964  workspace/a\\ b",
            Style::Gnu,
        );
        assert_eq!(
            (file.path.as_str(), file.size, file.kind),
            ("workspace/a b", 3, EntryKind::File)
        );
        assert_eq!((file.mode.as_str(), file.owner.as_str()), ("rw-r--r--", "self/self"));
        assert_eq!(file.modified, "2026-11-28T07:34:08Z");
        let odd = one(
            "-rw-r--r-- 7/x 1 2026-11-28 07:34:08 workspace/bad\\377\\n\\303\\274\\\\",
            Style::Gnu,
        );
        assert_eq!(odd.path, "workspace/bad\\377\\012ü\\134");
        let arrow =
            one("-rw-r--r-- root/root 0 2026-11-28 07:34:08 workspace/\\ ->\\ ", Style::Gnu);
        assert_eq!((arrow.path.as_str(), arrow.target), ("workspace/ -> ", None));
        let link = one(
            "lrwxrwxrwx root/root 0 2026-11-28 07:34:08 workspace/s\\ l -> ../x\\ y",
            Style::Gnu,
        );
        assert_eq!((link.path.as_str(), link.target.as_deref()), ("workspace/s l", Some("../x y")));
        let hard = one(
            "hrwsr--r-- r/r 0 2026-11-28 07:34:08 workspace/h\\ ->\\ l link to workspace/a\\ b",
            Style::Gnu,
        );
        assert_eq!(
            (hard.path.as_str(), hard.target.as_deref()),
            ("workspace/h -> l", Some("workspace/a b"))
        );
        assert_eq!((hard.kind, hard.mode.as_str()), (EntryKind::HardLink, "rwsr--r--"));
        let folder = one("drwxr-xr-x root/root 0 2026-11-28 07:34:08 workspace/", Style::Gnu);
        assert_eq!((folder.path.as_str(), folder.kind), ("workspace", EntryKind::Directory));
    }

    #[test]
    fn devices_and_what_is_no_entry_are_left_out() {
        let listing = b"crw-r--r-- self/self 1,3 2026-11-28 07:34:08 workspace/dev\ntar: words\n\nprw-r--r-- s/s 0 2026-11-28 07:34:08 workspace/p\n";
        let lines = listing.split(|byte| *byte == b'\n');
        let found: Vec<_> = lines.filter_map(|line| entry(line, Style::Gnu)).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, EntryKind::Fifo);
    }

    #[test]
    fn busybox_marks_hard_links_like_symbolic_ones() {
        let hard = one(
            "-rw-r--r-- root/root 0 2026-11-28 07:34:08 workspace/h -> workspace/a b",
            Style::Busybox,
        );
        assert_eq!(
            (hard.kind, hard.target.as_deref()),
            (EntryKind::HardLink, Some("workspace/a b"))
        );
        let arrow =
            one("-rw-r--r-- root/root 0 2026-11-28 07:34:08 workspace/ -> ", Style::Busybox);
        assert_eq!((arrow.kind, arrow.path.as_str()), (EntryKind::File, "workspace/ -> "));
        let link = one(
            "lrwxrwxrwx root/root 0 2026-11-28 07:34:08 workspace/l -> ../a\\b",
            Style::Busybox,
        );
        assert_eq!((link.kind, link.target.as_deref()), (EntryKind::Symlink, Some("../a\\134b")));
    }
}
