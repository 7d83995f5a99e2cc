//! What the extensions in front of a header say of its entry: long names and targets, and the records of pax.

use crate::extensions::archives::scan::paths::shown;
use crate::extensions::archives::scan::{OWNER_LIMIT, Refusal, no};

/// The largest size that a header can say in octal; bytes.
const OCTAL_LIMIT: u64 = 0o777_7777_7777;

/// What extensions said of the entry that comes next.
#[derive(Default)]
pub(super) struct Said {
    /// GNU's long name and long target: every tar knows them.
    pub(super) long: Called,
    /// Those of pax: busybox passes over them.
    pub(super) pax: Called,
    /// The name of a sparse file, which has another one in the header and in pax.
    pub(super) sparse_name: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    /// Whether it takes GNU tar to read what is said.
    pub(super) gnu: bool,
    pub(super) begun_at: Option<u64>,
}

/// What an entry is called and what it points to.
#[derive(Default)]
pub(super) struct Called {
    pub(super) name: Option<Vec<u8>>,
    pub(super) target: Option<Vec<u8>>,
}

/// A name or a target: as it is meant, and as who knows less reads it.
pub(super) struct Readings {
    pub(super) meant: Vec<u8>,
    pub(super) others: Vec<Vec<u8>>,
}

impl Readings {
    /// Of several, the first of which is meant.
    pub(super) fn of(readings: impl IntoIterator<Item = Option<Vec<u8>>>) -> Option<Self> {
        let mut readings = readings.into_iter().flatten();
        Some(Self { meant: readings.next()?, others: readings.collect() })
    }
}

impl Said {
    /// Takes in an extension of the header that comes next.
    pub(super) fn take_in(&mut self, kind: u8, data: &[u8]) -> Result<(), Refusal> {
        let text = |data: &[u8]| data.strip_suffix(b"\0").unwrap_or(data).to_vec();
        match kind {
            b'L' => self.long.name = Some(text(data)),
            b'K' => self.long.target = Some(text(data)),
            _ => {
                for (key, value) in records(data)? {
                    self.record(key, value)?;
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        match key {
            b"path" => self.pax.name = Some(value.to_vec()),
            b"linkpath" => self.pax.target = Some(value.to_vec()),
            b"GNU.sparse.name" => self.sparse_name = Some(value.to_vec()),
            b"size" => {
                let size = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                let Some(size) = size else {
                    return no("an extension of a header has a size that is none");
                };
                self.size = Some(size);
            }
            b"uid" | b"gid" => {
                let owner = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                if owner.is_none_or(|owner: u64| owner > OWNER_LIMIT) {
                    return no("an extension of a header names an owner that no host can have");
                }
            }
            b"hdrcharset" => return no("an extension of a header changes how names are written"),
            _ => {}
        }
        // Times and numbers of owners are in the header too, if not to the nanosecond.
        self.gnu |= matches!(key, b"path" | b"linkpath")
            || [b"SCHILY.".as_slice(), b"GNU.sparse.", b"RHT."]
                .iter()
                .any(|prefix| key.starts_with(prefix));
        Ok(())
    }
}

/// The size that header and extension agree on, and whether it only fits into an extension: then the header has none.
pub(super) fn agreed(
    name: &Readings,
    said: Option<u64>,
    header: u64,
) -> Result<(u64, bool), Refusal> {
    match said {
        Some(larger) if larger > OCTAL_LIMIT && header == 0 => Ok((larger, true)),
        Some(other) if other != header => {
            no(format!("the sizes of {} do not agree", shown(&name.meant)))
        }
        _ => Ok((header, false)),
    }
}

/// Key and value.
type Record<'a> = (&'a [u8], &'a [u8]);

/// The records of a pax extension: `LENGTH KEY=VALUE\n`.
fn records(mut data: &[u8]) -> Result<Vec<Record<'_>>, Refusal> {
    let mut records = Vec::new();
    while !data.is_empty() {
        let Some((length, key, value)) = record(data) else {
            return no("an extension of a header is damaged");
        };
        records.push((key, value));
        data = &data[length..];
    }
    Ok(records)
}

fn record(data: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let blank = data.iter().position(|byte| *byte == b' ')?;
    let length: usize = str::from_utf8(&data[..blank]).ok()?.parse().ok()?;
    let body = data.get(blank + 1..length)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    Some((length, &body[..equals], &body[equals + 1..]))
}
