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
/// Records that are kept as they are, and that take GNU tar.
const KEPT: [&[u8]; 4] = [b"SCHILY.xattr.", b"SCHILY.acl.", b"RHT.security.", SPARSE];
/// Records of a file with holes. Where its data is, its content begins with.
const SPARSE: &[u8] = b"GNU.sparse.";
const SPARSE_OF_OURS: [&str; 4] =
    ["GNU.sparse.major", "GNU.sparse.minor", "GNU.sparse.name", "GNU.sparse.realsize"];

/// Extensions of the entry that comes next.
#[derive(Default)]
pub(super) struct Said {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    records: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Said {
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

    /// Records that are written again of what is called `path`, and whether it takes GNU tar to read them.
    pub(super) fn kept(&self, path: &[u8]) -> io::Result<(Vec<u8>, bool)> {
        if self.record("hdrcharset").is_some() {
            return no("an extension of a header changes how names are written");
        }
        let (mut text, mut gnu) = (Vec::new(), false);
        for (key, value) in self.records.iter().flatten() {
            if key.starts_with(SPARSE) && !self.is_sparse_as_ours() {
                return no(format!("{} is sparse in a way that no snapshot is", shown(path)));
            }
            let special = KEPT.iter().any(|prefix| key.starts_with(prefix));
            let time = key == b"mtime" && is_time(value);
            if key == b"GNU.sparse.name" {
                text.extend(record(key, path));
            } else if special || time || key == b"uname" || key == b"gname" {
                text.extend(record(key, value));
            }
            gnu |= special;
        }
        Ok((text, gnu))
    }

    /// Whether a file with holes is one as captures write it (GNU's format 1.0).
    fn is_sparse_as_ours(&self) -> bool {
        let keys = self.records.iter().flatten().map(|(key, _)| key);
        let [major, minor, _, size] = SPARSE_OF_OURS.map(|key| self.record(key));
        (major, minor) == (Some(b"1"), Some(b"0"))
            && size.is_some_and(|size| size.iter().all(u8::is_ascii_digit))
            && keys
                .filter(|key| key.starts_with(SPARSE))
                .all(|key| SPARSE_OF_OURS.iter().any(|ours| ours.as_bytes() == key))
    }
}

/// Whether it is seconds, with or without a sign and a fraction.
fn is_time(value: &[u8]) -> bool {
    let value = value.strip_prefix(b"-").unwrap_or(value);
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    parts.next().is_some_and(|whole| !whole.is_empty() && digits(whole))
        && parts.next().is_none_or(digits)
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
