//! Checks a Parquet file before polars reads it: its checksums, and sizes and counts in its footer and page headers. polars
//! reserves memory for what a file claims, and a claim of 2^58 rows ends the process instead of the
//! reading.
//!
//! Reading the values is left to polars, which fails or panics at some that are damaged; `read` catches both. A file that this program wrote
//! has a checksum, so that no damaged one of these gets there. Files of other programs and of older versions have none.
//!
//! A crate was looked for and not taken: parquet-format-safe bounds what its decoder allocates, not what the counts in it say, and is a
//! second decoder beside that of polars.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crc32fast::Hasher;

use crate::marks::{CREATED_BY, NO_DIGITS, checksum_mark, last_place};

/// Maximum size of a footer: some 400,000 chunks of columns.
const MAX_FOOTER_BYTES: u64 = 64 << 20;
/// Maximum size of the header of a page, with the smallest and largest value of its column in it.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// Maximum size of a page, decompressed. Written are pages of about 1 MiB.
const MAX_PAGE_BYTES: i64 = 64 << 20;
/// Maximum of values in a row group, over all columns. Written are up to 10 million: 131,072 rows of the timeline.
pub(crate) const MAX_GROUP_VALUES: u64 = 1 << 26;
/// Maximum of decompressed bytes in a row group. Written are some 100 MB.
const MAX_GROUP_BYTES: i64 = 1 << 30;
/// Bytes that are read at once for a checksum.
const BUFFER_BYTES: u64 = 1 << 20;
/// Structs and lists in each other.
const MAX_DEPTH: u32 = 16;
/// Bytes of the smallest struct in a list, that of an order of columns: a field with an empty struct, and two ends. Lists of shorter ones claim
/// more elements than Parquet has.
const MIN_STRUCT_BYTES: usize = 3;

/// Encodings of values and levels (parquet.thrift, `Encoding`) that are written here: plain, dictionary, run lengths.
const ENCODINGS: [i64; 4] = [0, 2, 3, 8];

/// A reason why a file cannot be read, in words.
pub(crate) type Damage = String;

/// The footer of a file (parquet.thrift, `FileMetaData`).
pub(crate) struct Footer {
    /// Byte of the file at which it begins.
    pub(crate) begin: u64,
    bytes: Vec<u8>,
}

/// Finds the footer of a file.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn footer(file: &File) -> io::Result<Result<Footer, Damage>> {
    let size = file.metadata()?.len();
    let mut tail = [0; 8];
    let Some(at) = size.checked_sub(8).filter(|at| *at >= 4) else {
        return Ok(Err(format!("{size} bytes are no Parquet file")));
    };
    file.read_exact_at(&mut tail, at)?;
    let [a, b, c, d, magic @ ..] = tail;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if magic != *b"PAR1" {
        return Ok(Err(format!("it does not end as a Parquet file at byte {size}")));
    }
    if length > (at - 4).min(MAX_FOOTER_BYTES) {
        return Ok(Err(format!("its footer claims {length} bytes at byte {at}")));
    }
    let begin = at - length;
    let bytes = read(file, begin, length)?;
    Ok(Ok(Footer { begin, bytes }))
}

impl Footer {
    /// Checks its counts of elements.
    pub(crate) fn check(&self) -> Result<(), Damage> {
        Thrift::new(&self.bytes)
            .skip(STRUCT, 0)
            .map_err(|()| self.damage())
    }

    /// That it cannot be understood.
    pub(crate) fn damage(&self) -> Damage {
        format!("its footer at byte {} is damaged", self.begin)
    }
}

/// Result of comparing the checksum of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Checksum {
    /// Each byte is as it was written.
    Fits,
    /// A byte is not, or the checksum itself.
    Differs,
    /// Another program, or an older version, wrote the file without one.
    Missing,
}

/// Compares a file with its checksum.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn checksum(file: &File, footer: &Footer) -> io::Result<Checksum> {
    let mark = checksum_mark();
    let Some(place) = last_place(&footer.bytes, &mark) else {
        let is_own = last_place(&footer.bytes, CREATED_BY.as_bytes()).is_some();
        return Ok(if is_own {
            Checksum::Differs
        } else {
            Checksum::Missing
        });
    };
    let place = place + mark.len();
    let Some((before, rest)) = footer.bytes.split_at_checked(place) else {
        return Ok(Checksum::Differs);
    };
    let Some((digits, behind)) = rest.split_at_checked(NO_DIGITS.len()) else {
        return Ok(Checksum::Differs);
    };
    let mut found = Hasher::new();
    update(file, 0..footer.begin, &mut found)?;
    for bytes in [before, &NO_DIGITS, behind] {
        found.update(bytes);
    }
    update(
        file,
        footer.begin + footer.bytes.len() as u64..file.metadata()?.len(),
        &mut found,
    )?;
    let is_equal = format!("{:08x}", found.finalize()).as_bytes() == digits;
    Ok(if is_equal {
        Checksum::Fits
    } else {
        Checksum::Differs
    })
}

/// Adds bytes of a file to a checksum.
fn update(file: &File, range: Range<u64>, checksum: &mut Hasher) -> io::Result<()> {
    let mut buffer =
        vec![0; usize::try_from((range.end - range.start).min(BUFFER_BYTES)).map_err(io::Error::other)?];
    let mut at = range.start;
    while at < range.end {
        let length = usize::try_from((range.end - at).min(BUFFER_BYTES)).map_err(io::Error::other)?;
        let bytes = buffer.get_mut(..length).ok_or(io::ErrorKind::UnexpectedEof)?;
        file.read_exact_at(bytes, at)?;
        checksum.update(bytes);
        at += length as u64;
    }
    Ok(())
}

/// The chunk of a column in a row group, as the footer describes it.
pub(crate) struct Chunk {
    pub(crate) values: i64,
    pub(crate) range: Range<u64>,
}

/// Checks the pages of a row group of `rows` rows; with `sums` the checksums of those that have one.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn group(
    file: &File,
    rows: usize,
    chunks: &[Chunk],
    sums: bool,
) -> io::Result<Result<(), Damage>> {
    let size = file.metadata()?.len();
    let values = (rows as u64).saturating_mul(chunks.len().max(1) as u64);
    if values > MAX_GROUP_VALUES {
        return Ok(Err(format!(
            "a row group of {rows} rows and {} columns",
            chunks.len()
        )));
    }
    let mut bytes = 0_i64;
    for chunk in chunks {
        if u64::try_from(chunk.values) != Ok(rows as u64) {
            return Ok(Err(format!("a column of {} values in {rows} rows", chunk.values)));
        }
        if chunk.range.start < 4 || chunk.range.start > chunk.range.end || chunk.range.end > size {
            return Ok(Err("a column outside of the file".to_owned()));
        }
        match pages(file, chunk, sums)? {
            Ok(more) => bytes = bytes.saturating_add(more),
            Err(damage) => return Ok(Err(damage)),
        }
        if bytes > MAX_GROUP_BYTES {
            return Ok(Err(format!("a row group of more than {MAX_GROUP_BYTES} bytes")));
        }
    }
    Ok(Ok(()))
}

/// The decompressed bytes of a chunk's pages, once their headers are checked.
fn pages(file: &File, chunk: &Chunk, sums: bool) -> io::Result<Result<i64, Damage>> {
    let (mut at, mut left, mut bytes) = (chunk.range.start, chunk.values, 0_i64);
    while left > 0 {
        let room = (chunk.range.end - at).min(MAX_HEADER_BYTES);
        // Most headers are short; a long one is read again.
        let mut header = read(file, at, room.min(512))?;
        let mut page = Page::parse(&header);
        if page.is_err() && room > 512 {
            header = read(file, at, room)?;
            page = Page::parse(&header);
        }
        let Ok(page) = page else {
            return Ok(Err(format!("the page at byte {at} is damaged")));
        };
        let next = (at + page.header).checked_add(page.compressed);
        let next = next.filter(|next| *next <= chunk.range.end);
        let Some(next) = next.filter(|_| page.values <= left) else {
            return Ok(Err(format!("the page at byte {at} claims more than there is")));
        };
        if let Some(sum) = page.checksum.filter(|_| sums) {
            let mut found = Hasher::new();
            update(file, at + page.header..next, &mut found)?;
            if found.finalize() != sum {
                return Ok(Err(format!("the page at byte {at} is damaged")));
            }
        }
        bytes = bytes.saturating_add(page.uncompressed);
        left -= page.values;
        at = next;
    }
    Ok(Ok(bytes))
}

fn read(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// The header of a page (parquet.thrift, `PageHeader`).
struct Page {
    /// Bytes of the header.
    header: u64,
    compressed: u64,
    uncompressed: i64,
    /// CRC-32 of the page as it is stored.
    checksum: Option<u32>,
    /// Values in it, absent ones counted; 0 of a dictionary.
    values: i64,
}

impl Page {
    fn parse(bytes: &[u8]) -> Result<Self, ()> {
        let mut thrift = Thrift::new(bytes);
        let numbers = thrift.numbers()?;
        let number = |outer, inner| {
            let found = numbers.iter().find(|(place, _)| *place == (outer, inner));
            found.map(|(_, value)| *value)
        };
        let uncompressed = number(2, 0)
            .filter(|size| (0..=MAX_PAGE_BYTES).contains(size))
            .ok_or(())?;
        let compressed = number(3, 0).and_then(|size| u64::try_from(size).ok()).ok_or(())?;
        // Types of pages: 0 data, 2 dictionary, 3 data with levels of their own. Their headers: fields 5, 7, 8.
        let (outer, encoding) = match number(1, 0).ok_or(())? {
            0 => (5, 2),
            2 => (7, 2),
            3 => (8, 4),
            _ => return Err(()),
        };
        let values = number(outer, 1).ok_or(())?;
        let is_known = number(outer, encoding).is_some_and(|encoding| ENCODINGS.contains(&encoding));
        // A value of a dictionary has a byte at least.
        let fits = outer != 7 || values <= uncompressed;
        // Lengths of levels.
        let levels = [number(8, 5), number(8, 6)].map(Option::unwrap_or_default);
        let levels_fit = levels.iter().all(|length| (0..=uncompressed).contains(length));
        // An empty data page would never end the chunk.
        let smallest = i64::from(outer != 7);
        if values < smallest || !is_known || !fits || !levels_fit {
            return Err(());
        }
        Ok(Self {
            header: thrift.at as u64,
            compressed,
            uncompressed,
            checksum: number(4, 0)
                .and_then(|sum| i32::try_from(sum).ok())
                .map(i32::cast_unsigned),
            values: if outer == 7 { 0 } else { values },
        })
    }
}

/// Types of fields in Thrift's compact protocol.
const STRUCT: u8 = 12;

/// A number of a struct: its field, or the field of the struct around it and its own.
type Number = ((i16, i16), i64);

/// Bytes in Thrift's compact protocol (thrift-compact-protocol.md).
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn byte(&mut self) -> Result<u8, ()> {
        let byte = self.bytes.get(self.at).ok_or(())?;
        self.at += 1;
        Ok(*byte)
    }

    fn varint(&mut self) -> Result<u64, ()> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(())
    }

    /// Positive and negative numbers in turn: 0, -1, 1, -2.
    fn zigzag(&mut self) -> Result<i64, ()> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn forward(&mut self, bytes: u64) -> Result<(), ()> {
        let end = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| self.at.checked_add(bytes));
        self.at = end.filter(|end| *end <= self.bytes.len()).ok_or(())?;
        Ok(())
    }

    /// The next field of a struct: its number and type. `None` at the end.
    fn field(&mut self, last: &mut i16) -> Result<Option<u8>, ()> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *last = match byte >> 4 {
            0 => i16::try_from(self.zigzag()?).map_err(drop)?,
            delta => last.checked_add(i16::from(delta)).ok_or(())?,
        };
        Ok(Some(byte & 0xf))
    }

    /// Goes over a value of a struct or list.
    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), ()> {
        if depth > MAX_DEPTH {
            return Err(());
        }
        match kind {
            // Booleans are in the type of their field.
            1 | 2 => Ok(()),
            3 => self.forward(1),
            4..=6 => self.varint().map(drop),
            7 => self.forward(8),
            8 => self.varint().and_then(|length| self.forward(length)),
            9 | 10 => self.list(depth),
            STRUCT => {
                let mut last = 0;
                while let Some(kind) = self.field(&mut last)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            // Maps are in no struct of Parquet.
            _ => Err(()),
        }
    }

    fn list(&mut self, depth: u32) -> Result<(), ()> {
        let header = self.byte()?;
        let (count, kind) = match (header >> 4, header & 0xf) {
            (15, kind) => (self.varint()?, kind),
            (count, kind) => (u64::from(count), kind),
        };
        let begin = self.at;
        for _ in 0..count {
            match kind {
                1 | 2 => self.forward(1)?,
                kind => self.skip(kind, depth + 1)?,
            }
        }
        let least = usize::try_from(count)
            .map_err(drop)?
            .saturating_mul(MIN_STRUCT_BYTES);
        if kind == STRUCT && self.at - begin < least {
            return Err(());
        }
        Ok(())
    }

    /// The numbers of a struct, and of the structs in it.
    fn numbers(&mut self) -> Result<Vec<Number>, ()> {
        let mut numbers = Vec::new();
        let mut outer = 0;
        while let Some(kind) = self.field(&mut outer)? {
            match kind {
                4..=6 => numbers.push(((outer, 0), self.zigzag()?)),
                STRUCT => {
                    let mut inner = 0;
                    while let Some(kind) = self.field(&mut inner)? {
                        match kind {
                            4..=6 => numbers.push(((outer, inner), self.zigzag()?)),
                            kind => self.skip(kind, 1)?,
                        }
                    }
                }
                kind => self.skip(kind, 0)?,
            }
            // A header has some 15; one with more repeats them.
            if numbers.len() > 64 {
                return Err(());
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PageHeader` of a data page by hand: type 0, 100 bytes, 50 compressed, then `DataPageHeader`: 10 values, plain, levels by run lengths.
    const HEADER: [u8; 18] = [
        0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x64, 0x2c, 0x15, 0x14, 0x15, 0x00, 0x15, 0x06, 0x15, 0x06, 0x00,
        0x00,
    ];

    #[test]
    fn headers_of_pages_are_read_as_the_protocol_says() {
        let page = Page::parse(&HEADER).unwrap();
        assert_eq!(
            (page.header, page.uncompressed, page.compressed, page.values),
            (18, 100, 50, 10)
        );
        for cut in 0..HEADER.len() {
            assert!(Page::parse(&HEADER[..cut]).is_err(), "{cut}");
        }
        // An unknown encoding (5: deltas), a negative count of values, and no values.
        for (at, value) in [(11, 0x0a), (9, 0x13), (9, 0x00)] {
            let mut header = HEADER;
            header[at] = value;
            assert!(Page::parse(&header).is_err(), "{at} {value}");
        }
    }

    #[test]
    fn lists_that_claim_more_than_there_is_are_refused() {
        // A struct with field 1: a list of 2^31 - 1 structs.
        let claim = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00, 0x00];
        assert!(Thrift::new(&claim).skip(STRUCT, 0).is_err());
        // Three empty structs of one byte each.
        assert!(Thrift::new(&[0x19, 0x3c, 0, 0, 0, 0]).skip(STRUCT, 0).is_err());
        // Two structs with three small numbers each.
        let two = [
            0x19, 0x2c, 0x15, 2, 0x15, 2, 0x15, 2, 0, 0x15, 2, 0x15, 2, 0x15, 2, 0, 0,
        ];
        assert!(Thrift::new(&two).skip(STRUCT, 0).is_ok());
        // Structs in structs, deeper than Parquet has them.
        assert!(Thrift::new(&[0x1c; 100]).skip(STRUCT, 0).is_err());
    }
}
