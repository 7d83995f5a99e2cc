//! Map of a file with holes (GNU's format 1.0), which its content begins with: how many regions there are, then the offset and
//! the bytes of each, a number a line, up to a whole block. GNU tar follows it and never asks whether the content is as long as
//! the map says: what it would take too much of is the next header.

use std::io::{self, Read};

use crate::extensions::archives::import::judge::{no, shown};

/// Bytes of a block.
const BLOCK: u64 = 512;
/// How many digits a number may have.
const DIGITS_LIMIT: usize = 19;
/// The shortest line of a map, and the line behind it; bytes.
const REGION_LEAST: u64 = 4;

/// Reader of a sparse file's content, which judges the map as it passes.
pub(super) struct Mapped<'a, R> {
    content: R,
    map: Option<Map<'a>>,
}

impl<'a, R: Read> Mapped<'a, R> {
    /// Of a file called `name` whose content has `stored` bytes; `real` is its size with its holes, `None` for one without.
    pub(super) fn new(content: R, name: &'a [u8], stored: u64, real: Option<u64>) -> Self {
        Self { content, map: real.map(|real| Map::new(name, stored, real)) }
    }

    /// The content that is left.
    pub(super) fn content(&self) -> &R {
        &self.content
    }

    /// After the last byte: the map was there.
    pub(super) fn finish(&self) -> io::Result<()> {
        match &self.map {
            Some(map) if !matches!(map.part, Part::Data) => map.wrong("does not end in it"),
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Mapped<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.content.read(buffer)?;
        if let Some(map) = &mut self.map {
            map.pass(&buffer[..length])?;
        }
        Ok(length)
    }
}

/// Part of the content that comes next.
enum Part {
    Count,
    Offset { left: u64 },
    Bytes { left: u64, offset: u64 },
    Padding,
    Data,
}

/// Region that may follow another: tar pads each to a block, and says where a file ends with a region of no bytes.
#[derive(Clone, Copy)]
enum Behind {
    Any,
    End,
    Nothing,
}

struct Map<'a> {
    name: &'a [u8],
    stored: u64,
    real: u64,
    part: Part,
    /// Digits of a number that has not ended.
    digits: Vec<u8>,
    /// Bytes of the map so far.
    length: u64,
    /// Where the region before ends.
    end: u64,
    /// Bytes of all regions so far.
    bytes: u64,
    behind: Behind,
}

impl<'a> Map<'a> {
    fn new(name: &'a [u8], stored: u64, real: u64) -> Self {
        let (part, digits, behind) = (Part::Count, Vec::new(), Behind::Any);
        Self { name, stored, real, part, digits, length: 0, end: 0, bytes: 0, behind }
    }

    fn wrong<T>(&self, why: &str) -> io::Result<T> {
        no(format!("the map of the holes of {} {why}", shown(self.name)))
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            if matches!(self.part, Part::Padding) && self.length.is_multiple_of(BLOCK) {
                self.part = Part::Data;
            }
            match (&self.part, byte) {
                (Part::Data, _) => return Ok(()),
                (Part::Padding, 0) => {}
                (Part::Padding, _) => return self.wrong("is followed by something"),
                (_, b'\n') => self.number()?,
                (_, b'0'..=b'9') if self.digits.len() < DIGITS_LIMIT => self.digits.push(*byte),
                _ => return self.wrong("has a number that is none"),
            }
            self.length += 1;
        }
        if matches!(self.part, Part::Padding) && self.length.is_multiple_of(BLOCK) {
            self.part = Part::Data;
        }
        Ok(())
    }

    /// A number has ended.
    fn number(&mut self) -> io::Result<()> {
        let digits = std::mem::take(&mut self.digits);
        let number = str::from_utf8(&digits).ok().and_then(|text| text.parse::<i64>().ok());
        let Some(number) = number.and_then(|number| u64::try_from(number).ok()) else {
            return self.wrong("has a number that is none");
        };
        let left = match self.part {
            Part::Count if number > self.stored / REGION_LEAST => {
                return self.wrong("names more regions than it has room for");
            }
            Part::Count => number,
            Part::Offset { .. } if number < self.end => {
                return self.wrong("names regions that overlap");
            }
            Part::Offset { left } => {
                self.part = Part::Bytes { left, offset: number };
                return Ok(());
            }
            Part::Bytes { left, offset } => {
                self.behind = match (self.behind, number) {
                    (Behind::Nothing, _) | (Behind::End, 1..) => {
                        return self.wrong("names a region behind one that is no whole blocks");
                    }
                    (_, 0) => Behind::Nothing,
                    _ if number.is_multiple_of(BLOCK) => Behind::Any,
                    _ => Behind::End,
                };
                self.end = offset.saturating_add(number);
                self.bytes = self.bytes.saturating_add(number);
                left - 1
            }
            Part::Padding | Part::Data => return Ok(()),
        };
        if self.end > self.real {
            return self.wrong("names a region behind its end");
        }
        if left > 0 {
            self.part = Part::Offset { left };
            return Ok(());
        }
        // The line break is not counted yet.
        let map = (self.length + 1).next_multiple_of(BLOCK);
        if map.checked_add(self.bytes) != Some(self.stored) {
            return self.wrong("does not say what is stored of it");
        }
        self.part = Part::Padding;
        Ok(())
    }
}
