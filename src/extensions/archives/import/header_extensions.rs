//! Extensions in front of a header, which say of its entry what 512 bytes cannot: long names, and the records of pax.

use std::collections::BTreeMap;
use std::io::{self, Read};

use tar::{Entry, EntryType, Header};

use crate::extensions::archives::import::judge::{no, shown};

/// How long an extension may be; bytes.
const EXTENSION_LIMIT: u64 = 1024 * 1024;
/// The largest number of an owner; the one above it means none.
const OWNER_LIMIT: u64 = u32::MAX as u64 - 1;
/// The largest size that a header can say in octal; bytes.
const OCTAL_LIMIT: u64 = 0o777_7777_7777;
/// Records of attributes, whose values are bytes.
const XATTR: &[u8] = b"SCHILY.xattr.";
/// Records that are kept as they are, and that take GNU tar.
const KEPT: [&[u8]; 4] = [XATTR, b"SCHILY.acl.", b"RHT.security.", SPARSE];
/// Records of a file with holes. Where its data is, its content begins with.
const SPARSE: &[u8] = b"GNU.sparse.";
const SPARSE_OF_OURS: [&str; 4] =
    ["GNU.sparse.major", "GNU.sparse.minor", "GNU.sparse.name", "GNU.sparse.realsize"];

/// The largest size that a file may have with its holes; bytes. It is that of an archive.
const SPARSE_LIMIT: u64 = 1 << 60;
/// How many digits behind the point a time keeps: nanoseconds.
const FRACTION: usize = 9;

/// Time of an entry.
pub(super) struct Time {
    /// Whole seconds since 1970.
    seconds: i64,
    /// Value of its record, where it has one.
    record: Option<String>,
}

/// Extensions of the entry that comes next.
#[derive(Default)]
pub(super) struct HeaderExtensions {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    records: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl HeaderExtensions {
    /// Takes an entry in that is an extension; whether it is one.
    pub(super) fn take_in<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> io::Result<bool> {
        let kind = entry.header().entry_type();
        if !matches!(kind, EntryType::XHeader | EntryType::GNULongName | EntryType::GNULongLink) {
            return Ok(false);
        }
        if entry.size() > EXTENSION_LIMIT {
            return no(format!("a header has an extension of {} bytes", entry.size()));
        }
        let mut data = Vec::new();
        entry.read_to_end(&mut data)?;
        if data.len() as u64 != entry.size() {
            return no("it ends within an extension of a header");
        }
        let twice = if kind == EntryType::XHeader {
            self.records.replace(records(&data)?).is_some()
        } else {
            let text = data.strip_suffix(b"\0").unwrap_or(&data).to_vec();
            let long = kind == EntryType::GNULongName;
            let slot = if long { &mut self.name } else { &mut self.target };
            slot.replace(text).is_some()
        };
        if twice { no("a header has two extensions of one kind") } else { Ok(true) }
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        self.name.is_none() && self.target.is_none() && self.records.is_none()
    }

    fn record(&self, key: &str) -> Option<&[u8]> {
        self.records.as_ref()?.get(key.as_bytes()).map(Vec::as_slice)
    }

    /// Number that a record says.
    fn number(&self, key: &str) -> io::Result<Option<u64>> {
        let Some(value) = self.record(key) else { return Ok(None) };
        match str::from_utf8(value).ok().and_then(|text| text.parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => no(format!("an extension of a header has a {key} that is none")),
        }
    }

    /// Name of the entry. A sparse file has another one in its header.
    pub(super) fn name(&self, header: &Header) -> Vec<u8> {
        let said = self.record("GNU.sparse.name").or_else(|| self.record("path"));
        let said = said.or(self.name.as_deref());
        said.map_or_else(|| header.path_bytes().into_owned(), <[u8]>::to_vec)
    }

    /// Target of the entry; empty where there is none.
    pub(super) fn target(&self, header: &Header) -> Vec<u8> {
        let said = self.record("linkpath").or(self.target.as_deref());
        let own = || header.link_name_bytes().unwrap_or_default().into_owned();
        said.map_or_else(own, <[u8]>::to_vec)
    }

    /// Size that header and extension agree on, and whether only the extension has room for it.
    pub(super) fn size(&self, header: &Header, name: &[u8]) -> io::Result<(u64, bool)> {
        let own = header.entry_size()?;
        match self.number("size")? {
            Some(larger) if larger > OCTAL_LIMIT && own == 0 => Ok((larger, true)),
            Some(other) if other != own => no(format!("the sizes of {} do not agree", shown(name))),
            _ => Ok((own, false)),
        }
    }

    /// User and group of the entry.
    pub(super) fn owners(&self, header: &Header, name: &[u8]) -> io::Result<[u64; 2]> {
        let owners = [
            self.number("uid")?.unwrap_or(header.uid().unwrap_or(0)),
            self.number("gid")?.unwrap_or(header.gid().unwrap_or(0)),
        ];
        if owners.iter().any(|owner| *owner > OWNER_LIMIT) {
            return no(format!("{} has an owner that no host can have", shown(name)));
        }
        Ok(owners)
    }

    /// Time of the entry: that of its record, else the header's.
    pub(super) fn time(&self, header: &Header, name: &[u8]) -> io::Result<Time> {
        let time = match self.record("mtime") {
            Some(value) => time_in_record(value),
            None => {
                seconds_in(&header.as_old().mtime).map(|seconds| Time { seconds, record: None })
            }
        };
        let wrong = || no(format!("{} has a time that no host can keep", shown(name)));
        time.map_or_else(wrong, Ok)
    }

    /// Size of a file with its holes; nothing where it has none.
    pub(super) fn sparse(&self, kind: EntryType, name: &[u8]) -> io::Result<Option<u64>> {
        let mut keys = self.records.iter().flatten().map(|(key, _)| key);
        if !keys.any(|key| key.starts_with(SPARSE)) {
            return Ok(None);
        }
        if kind != EntryType::Regular {
            return no(format!("{} has holes and is no file", shown(name)));
        }
        match self.size_of_ours().filter(|size| *size <= SPARSE_LIMIT) {
            Some(size) => Ok(Some(size)),
            None => no(format!("{} is sparse in a way that no snapshot is", shown(name))),
        }
    }

    /// Records that are written again of what is called `path`, and whether it takes GNU tar to read them.
    pub(super) fn kept(&self, path: &[u8], time: &Time) -> io::Result<(Vec<u8>, bool)> {
        if self.record("hdrcharset").is_some() {
            return no("an extension of a header changes how names are written");
        }
        let (mut text, mut gnu) = (Vec::new(), false);
        for (key, value) in self.records.iter().flatten() {
            let special = KEPT.iter().any(|prefix| key.starts_with(prefix));
            if key == b"GNU.sparse.name" {
                text.extend(record(key, path));
            } else if special || key == b"uname" || key == b"gname" {
                text.extend(record(key, value));
            } else if let Some(time) = time.record.as_ref().filter(|_| key == b"mtime") {
                text.extend(record(key, time.as_bytes()));
            }
            gnu |= special;
        }
        Ok((text, gnu))
    }

    /// Size of a file with holes, where it is one as captures write it (GNU's format 1.0).
    fn size_of_ours(&self) -> Option<u64> {
        let mut keys = self.records.iter().flatten().map(|(key, _)| key);
        let [major, minor, _, size] = SPARSE_OF_OURS.map(|key| self.record(key));
        let ours = (major, minor) == (Some(b"1"), Some(b"0"))
            && keys.all(|key| {
                !key.starts_with(SPARSE) || SPARSE_OF_OURS.iter().any(|ours| ours.as_bytes() == key)
            });
        let digits = size.filter(|size| ours && size.iter().all(u8::is_ascii_digit))?;
        str::from_utf8(digits).ok()?.parse().ok()
    }
}

impl Time {
    /// Says it in a header. Where a record says it, the header says what all can read of it, as GNU tar does.
    pub(super) fn write(&self, header: &mut Header) {
        let plain = u64::try_from(self.seconds).map_or(0, |seconds| seconds.min(OCTAL_LIMIT));
        let (sign, first) = if self.seconds < 0 { (0xff, 0xff) } else { (0, 0x80) };
        header.set_mtime(plain);
        if self.record.is_none() && i64::try_from(plain) != Ok(self.seconds) {
            let field = &mut header.as_old_mut().mtime;
            field[..4].copy_from_slice(&[first, sign, sign, sign]);
            field[4..].copy_from_slice(&self.seconds.to_be_bytes());
        }
    }
}

/// Time of a record: seconds, with or without a sign and a fraction.
fn time_in_record(value: &[u8]) -> Option<Time> {
    let text = str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let bare = whole.strip_prefix('-').unwrap_or(whole);
    if bare.is_empty() || !digits(bare) || !digits(fraction) {
        return None;
    }
    let seconds: i64 = whole.parse().ok()?;
    // Before 1970 a fraction leads into the second before.
    seconds.checked_sub(1)?;
    let fraction = &fraction[..fraction.len().min(FRACTION)];
    let point = if fraction.is_empty() { "" } else { "." };
    Some(Time { seconds, record: Some(format!("{whole}{point}{fraction}")) })
}

/// Seconds in a header: octal digits, or a number with a sign in GNU's way.
fn seconds_in(field: &[u8; 12]) -> Option<i64> {
    let (head, tail) = field.split_at(4);
    let number = i64::from_be_bytes(tail.try_into().ok()?);
    match head {
        [0x80, 0, 0, 0] => return Some(number).filter(|number| *number >= 0),
        [0xff, 0xff, 0xff, 0xff] => return Some(number).filter(|number| *number < 0),
        _ => {}
    }
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let digits = field[..end].trim_ascii();
    if digits.is_empty() {
        return Some(0);
    }
    let octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    i64::from_str_radix(str::from_utf8(digits).ok().filter(|_| octal)?, 8).ok()
}

/// A record of pax: `LENGTH KEY=VALUE\n`.
pub(super) fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while rest + length.to_string().len() != length {
        length = rest + length.to_string().len();
    }
    [length.to_string().as_bytes(), b" ", key, b"=", value, b"\n"].concat()
}

fn records(mut data: &[u8]) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut records = BTreeMap::new();
    while !data.is_empty() {
        let Some((length, key, value)) = first_record(data) else {
            return no("an extension of a header is damaged");
        };
        if key.contains(&0) || (value.contains(&0) && !key.starts_with(XATTR)) {
            return no("an extension of a header has a zero byte in it");
        }
        records.insert(key.to_vec(), value.to_vec());
        data = &data[length..];
    }
    Ok(records)
}

fn first_record(data: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let blank = data.iter().position(|byte| *byte == b' ')?;
    let length: usize = str::from_utf8(&data[..blank]).ok()?.parse().ok()?;
    let body = data.get(blank + 1..length)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    Some((length, &body[..equals], &body[equals + 1..]))
}
