//! An archive from outside, read once with the tar library and written anew: whatever another tar would have made of what
//! came, of what is written there is one reading. Written are names, modes, owners, times, links, content, extended attributes
//! and holes, and nothing else that a header can say.

use std::cell::RefCell;
use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};
use tar::{Archive, Builder, Entry, EntryType, Header};

use crate::domain::text::{hex, plural};
use crate::extensions::archives::import::header_extensions::{HeaderExtensions, Time};
use crate::extensions::archives::import::judge::{Admitted, Half, Judge, no, shown};
use crate::extensions::archives::import::sparse::Mapped;

/// Bytes of a block.
const BLOCK: usize = 512;
/// How long a name may be in a header; bytes.
const NAME_ROOM: usize = 100;

/// Promise of a manifest: what may come.
#[derive(Debug, Clone, Default)]
pub(super) struct Promise {
    /// The size of the tar; bytes.
    pub(super) content_bytes: u64,
    /// How many entries, where that is known: all, or those of the workspace.
    pub(super) files: Option<u64>,
    /// SHA-256 (hex) of the tar.
    pub(super) sha256: String,
    /// Names of the volumes.
    pub(super) volumes: Vec<String>,
}

/// Tar that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// The size of the tar; bytes.
    pub(super) content_bytes: u64,
    /// Entries, as they were promised; all where nothing was.
    pub(super) files: u64,
    /// SHA-256 (hex) of the tar.
    pub(super) sha256: String,
    /// Where `workspace/` begins; bytes.
    pub(super) volumes_bytes: u64,
    /// Whether it takes GNU tar to read it.
    pub(super) needs_gnu_tar: bool,
}

/// Reads a tar to its end, judges it, and writes it anew.
///
/// Errors: why it is not taken, as a sentence; or the error of a side.
pub(super) fn rewrite(
    content: impl Read,
    out: impl Write,
    promise: &Promise,
) -> io::Result<Written> {
    let source = RefCell::new(Measured::new(content, promise.content_bytes));
    let mut archive = Archive::new(Shared(&source));
    let mut rewriting = Rewriting {
        promise,
        source: &source,
        judge: Judge::new(&promise.volumes),
        out: Builder::new(Measured::new(out, u64::MAX)),
        files: 0,
        in_workspace: 0,
        workspace_at: None,
        needs_gnu_tar: false,
    };
    let mut said = HeaderExtensions::default();
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        if !said.take_in(&mut entry)? {
            rewriting.take(entry, &std::mem::take(&mut said))?;
        }
    }
    rewriting.finish(&said)
}

/// Side of a rewriting, and what went through it.
struct Measured<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
    most: u64,
}

impl<T> Measured<T> {
    fn new(inner: T, most: u64) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0, most }
    }

    fn passed(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.most {
            let most = self.most;
            return no(format!("there is more in it than the {most} bytes that its manifest says"));
        }
        self.hash.update(bytes);
        Ok(bytes.len())
    }
}

impl<T: Read> Read for Measured<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.passed(&buffer[..length])
    }
}

impl<T: Write> Write for Measured<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.inner.write(bytes)?;
        self.passed(&bytes[..length])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The source for the library, and for what it cannot know to be there: a raw entry's data has the size that its header says.
struct Shared<'a, R>(&'a RefCell<Measured<R>>);

impl<R: Read> Read for Shared<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(buffer)
    }
}

struct Rewriting<'a, R, W: Write> {
    promise: &'a Promise,
    source: &'a RefCell<Measured<R>>,
    judge: Judge<'a>,
    out: Builder<Measured<W>>,
    files: u64,
    in_workspace: u64,
    workspace_at: Option<u64>,
    needs_gnu_tar: bool,
}

impl<R: Read, W: Write> Rewriting<'_, R, W> {
    /// Takes one entry, with what was said of it before.
    fn take<T: Read>(
        &mut self,
        mut entry: Entry<'_, T>,
        said: &HeaderExtensions,
    ) -> io::Result<()> {
        let header = entry.header().clone();
        let (kind, name) = (header.entry_type(), said.name(&header));
        let (size, larger) = said.size(&header, &name)?;
        if size > self.promise.content_bytes {
            return no(format!("{} is larger than the archive", shown(&name)));
        }
        is_possible(kind, &name, size)?;
        let owners = said.owners(&header, &name)?;
        let admitted = self.judge.admit(&name, kind, &said.target(&header))?;
        let real = said.sparse(kind, &name)?;
        let time = said.time(&header, &name)?;
        let (records, gnu) = said.kept(&admitted.path, &time)?;
        // The library does not know that it is there.
        let mut beneath = Shared(self.source);
        let from: &mut dyn Read = if larger { &mut beneath } else { &mut entry };
        let mut data = Mapped::new(from.take(size), &name, size, real);
        if admitted.half == Half::Workspace {
            let at = self.out.get_ref().bytes;
            self.workspace_at.get_or_insert(at);
            self.in_workspace += 1;
            // Volumes are unpacked by the engine.
            self.needs_gnu_tar |= gnu || larger;
        }
        self.files += 1;
        if !records.is_empty() {
            extension(&mut self.out, EntryType::XHeader, &records)?;
        }
        for (kind, text) in
            [(EntryType::GNULongName, &admitted.path), (EntryType::GNULongLink, &admitted.target)]
        {
            if text.len() > NAME_ROOM {
                extension(&mut self.out, kind, &[text, b"\0".as_slice()].concat())?;
            }
        }
        let anew = header_of(&header, &admitted, size, owners, &time);
        self.out.append(&anew, &mut data)?;
        if data.content().limit() > 0 {
            return no(format!("it ends within {}", shown(&name)));
        }
        data.finish()?;
        if larger {
            let padding = size.next_multiple_of(BLOCK as u64) - size;
            Shared(self.source).read_exact(&mut [0; BLOCK][..padding as usize])?;
        }
        Ok(())
    }

    /// After the last entry: what came was all, and all of it was promised.
    fn finish(self, said: &HeaderExtensions) -> io::Result<Written> {
        let Promise { content_bytes, files, sha256, .. } = self.promise;
        if !said.is_empty() {
            return no("it ends between the two parts of a header");
        }
        let mut piece = [0; 16 * BLOCK];
        loop {
            match Shared(self.source).read(&mut piece)? {
                0 => break,
                length if piece[..length].iter().all(|byte| *byte == 0) => {}
                _ => return no("something follows its end"),
            }
        }
        let seen = self.source.borrow().bytes;
        if seen < *content_bytes {
            return no(format!("it ends after {seen} of {content_bytes} bytes"));
        }
        self.judge.finish()?;
        // A capture counts what tar lists of the workspace.
        if let Some(promised) =
            files.filter(|promised| ![self.files, self.in_workspace].contains(promised))
        {
            return no(format!(
                "it has {}, and its manifest says {promised}",
                plural(self.files, "entry", "entries")
            ));
        }
        let hash = hex(&self.source.borrow().hash.clone().finalize());
        if hash != *sha256 {
            return no(format!("its SHA-256 is {hash}, and its manifest says {sha256}"));
        }
        let mut out = self.out.into_inner()?;
        out.flush()?;
        Ok(Written {
            content_bytes: out.bytes,
            files: files.unwrap_or(self.files),
            sha256: hex(&out.hash.finalize()),
            volumes_bytes: self.workspace_at.unwrap_or(0),
            needs_gnu_tar: self.needs_gnu_tar,
        })
    }
}

/// Refuses what no snapshot has.
fn is_possible(kind: EntryType, name: &[u8], size: u64) -> io::Result<()> {
    match kind {
        EntryType::Regular if name.ends_with(b"/") => {
            no(format!("{} is a file and named as a folder", shown(name)))
        }
        EntryType::Regular => Ok(()),
        EntryType::Char | EntryType::Block => no(format!("{} is a device", shown(name))),
        EntryType::Directory | EntryType::Fifo | EntryType::Symlink | EntryType::Link => {
            if size > 0 {
                return no(format!("{} has content and is no file", shown(name)));
            }
            Ok(())
        }
        other => {
            let letter = char::from(other.as_byte()).escape_default();
            no(format!("{} is of a kind that no snapshot has ('{letter}')", shown(name)))
        }
    }
}

/// A header of ours, of one that came.
fn header_of(
    from: &Header,
    admitted: &Admitted,
    size: u64,
    [uid, gid]: [u64; 2],
    time: &Time,
) -> Header {
    let mut header = plain(from.entry_type(), &admitted.path, size);
    header.set_mode(from.mode().unwrap_or(0) & 0o7777);
    header.set_uid(uid);
    header.set_gid(gid);
    time.write(&mut header);
    let copy = |to: &mut [u8], from: &[u8]| to[..from.len()].copy_from_slice(from);
    let target = &admitted.target[..admitted.target.len().min(NAME_ROOM)];
    copy(&mut header.as_old_mut().linkname, target);
    if let Some(ustar) = header.as_ustar_mut() {
        copy(&mut ustar.uname, from.username_bytes().unwrap_or_default());
        copy(&mut ustar.gname, from.groupname_bytes().unwrap_or_default());
    }
    header.set_cksum();
    header
}

/// A header that says as little as can be.
fn plain(kind: EntryType, path: &[u8], size: u64) -> Header {
    // Not GNU's: its tar would look for the map of a sparse file in the header.
    let mut header = Header::new_ustar();
    let room = path.len().min(NAME_ROOM);
    header.as_old_mut().name[..room].copy_from_slice(&path[..room]);
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    header
}

fn extension<W: Write>(out: &mut Builder<W>, kind: EntryType, data: &[u8]) -> io::Result<()> {
    let name: &[u8] = if kind == EntryType::XHeader { b"././@PaxHeader" } else { b"././@LongLink" };
    out.append(&plain(kind, name, data.len() as u64), data)
}

#[cfg(test)]
mod tests;
