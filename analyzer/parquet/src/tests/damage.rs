//! Damaged files: each is refused with its name and a place in it, or has the values that were written.

use std::fs;
use std::path::Path;

use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use polars_parquet_format::{FileMetaData, PageHeader};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{timeline, write};
use crate::{Error, Options, TABLES, TableData, read_file};

/// Maximum number of bytes of a footer and of a header here.
const ENOUGH: usize = 1 << 20;

/// The footer of a file, and the byte at which it begins.
fn footer(bytes: &[u8]) -> (FileMetaData, usize) {
    let tail = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap());
    let begin = tail - usize::try_from(length).unwrap();
    let mut input = TCompactInputProtocol::new(&bytes[begin..tail], ENOUGH);
    (FileMetaData::read_from_in_protocol(&mut input).unwrap(), begin)
}

/// The checksum of RFC 1952 (gzip), bit by bit, as parquet-format's README asks for it.
fn crc32(bytes: &[u8]) -> u32 {
    let byte = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    };
    !bytes.iter().fold(u32::MAX, byte)
}

/// The tables of a dataset in several row groups, and their bytes.
fn dataset(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let options = Options {
        row_group: 100,
        ..Options::default()
    };
    write(dir, &options, &timeline(450)).unwrap();
    let paths = TABLES.map(|table| dir.join(table).join("part-0.parquet"));
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).to_vec()
}

#[test]
fn each_page_has_the_checksum_of_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut found = 0;
    for (path, bytes) in dataset(dir.path()) {
        let (footer, end) = footer(&bytes);
        let mut at = 4;
        // Pages follow each other from the magic number to the footer: nothing is in between.
        while at < end {
            let mut rest = &bytes[at..end];
            let mut input = TCompactInputProtocol::new(&mut rest, ENOUGH);
            let header = PageHeader::read_from_in_protocol(&mut input).unwrap();
            let (page, behind) = rest.split_at(usize::try_from(header.compressed_page_size).unwrap());
            assert_eq!(
                header.crc,
                Some(crc32(page).cast_signed()),
                "{} {at}",
                path.display()
            );
            at = end - behind.len();
            found += 1;
        }
        let chunks = footer.row_groups.iter().flat_map(|group| &group.columns);
        for chunk in chunks.map(|chunk| chunk.meta_data.as_ref().unwrap()) {
            let first = chunk.dictionary_page_offset.unwrap_or(chunk.data_page_offset);
            assert!((4..i64::try_from(end).unwrap()).contains(&first));
        }
        // That of the whole file, with zeros in the place of its digits.
        let pairs = footer.key_value_metadata.unwrap();
        let digits = pairs[0].value.clone().unwrap();
        assert_eq!(pairs[0].key, "roce-analyze.crc32");
        let mut whole = bytes.clone();
        let mark = [b"roce-analyze.crc32\x18\x08", digits.as_bytes()].concat();
        let place = whole
            .windows(mark.len())
            .rposition(|window| window == mark)
            .unwrap();
        whole[place + 20..place + 28].fill(b'0');
        assert_eq!(format!("{:08x}", crc32(&whole)), digits, "{}", path.display());
    }
    assert!(found > 500, "{found} pages");
}

/// A damaged copy of a file.
fn damage(bytes: &[u8], random: &mut Pcg64) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    let (_, footer) = footer(bytes);
    let end = copy.len();
    let at = if random.random_range(0..2) == 0 {
        random.random_range(0..end)
    } else {
        random.random_range(footer..end)
    };
    let length = [1, 1, 4, 9, 64, 512][random.random_range(0..6)];
    let range = at..(at + length).min(end);
    match random.random_range(0..6) {
        0 => copy[at] ^= 1 << random.random_range(0..8),
        1 => copy[range].fill(0),
        2 => copy[range].fill(0xff),
        3 => random.fill(&mut copy[range]),
        // Cut, or with a piece of it gone.
        4 => copy.truncate(at),
        _ => drop(copy.drain(range)),
    }
    copy
}

fn refused(path: &Path, read: &Result<TableData, Error>, bytes: usize) -> bool {
    let Err(error) = read else { return false };
    let text = error.to_string();
    let is_placed = text.contains("at byte") || bytes < 12;
    assert!(text.contains(path.to_str().unwrap()) && is_placed, "{text}");
    true
}

#[test]
fn damaged_files_are_refused_with_the_place_or_read_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let files = dataset(dir.path());
    let mut random = Pcg64::seed_from_u64(12);
    for (path, bytes) in files {
        let original = read_file(&path).unwrap();
        for round in 0..40 {
            let copy = damage(&bytes, &mut random);
            if copy == bytes {
                continue;
            }
            fs::write(&path, &copy).unwrap();
            let read = read_file(&path);
            if !refused(&path, &read, copy.len()) {
                // `TableData` has numbers that are none (NaN), which equal nothing.
                assert_eq!(
                    format!("{:?}", read.unwrap()),
                    format!("{original:?}"),
                    "{} {round}",
                    path.display()
                );
            }
        }
        fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn a_byte_of_a_page_that_changed_is_found_at_that_page() {
    let dir = tempfile::tempdir().unwrap();
    let files = dataset(dir.path());
    let (path, bytes) = &files[1];
    let (footer, _) = footer(bytes);
    for group in &footer.row_groups {
        let chunk = group.columns[3].meta_data.as_ref().unwrap();
        let page = usize::try_from(chunk.data_page_offset).unwrap();
        let end =
            chunk.dictionary_page_offset.unwrap_or(chunk.data_page_offset) + chunk.total_compressed_size;
        let mut copy = bytes.clone();
        copy[usize::try_from(end).unwrap() - 1] ^= 1;
        fs::write(path, &copy).unwrap();
        let error = read_file(path).unwrap_err().to_string();
        assert!(
            error.contains(&format!("the page at byte {page} is damaged")),
            "{error}"
        );
    }
}
