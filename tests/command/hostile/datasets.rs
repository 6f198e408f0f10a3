//! Stored datasets whose counts and lengths cannot be.

use std::fs;

use tempfile::tempdir;

use super::{ends, fifo, refused};
use crate::captures::Capture;
use crate::command::command;

/// The place of the count of values in the first data page of a Parquet file (parquet.thrift, `PageHeader`: fields 1 to 4 are numbers, then
/// comes the page's own header, whose first field is the count). Pages begin behind the magic.
fn first_count(bytes: &[u8]) -> usize {
    let varint = |at: &mut usize| {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = bytes[*at];
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    // A data page of a column that is not repeated: dictionaries come before, and are gone over by a search for the header's bytes.
    (4..bytes.len() - 8)
        .find_map(|begin| {
            let mut at = begin;
            for _ in 0..4 {
                if bytes.get(at) != Some(&0x15) {
                    return None;
                }
                at += 1;
                varint(&mut at);
            }
            // The header of a data page is field 5.
            (bytes[begin + 1] == 0 && bytes[at] == 0x1c && bytes[at + 1] == 0x15).then_some(at + 2)
        })
        .unwrap()
}

#[test]
fn damaged_datasets_are_refused_and_others_are_read() {
    let folder = tempdir().unwrap();
    let dir = |name: &str| folder.path().join(name);
    crate::dataset::written(&dir("good"), &[&Capture::named("rping").path], &[]);
    crate::dataset::written(&dir("bad"), &[&Capture::named("atomic").path], &[]);
    let part = dir("bad/timeline/part-0.parquet");
    let whole = fs::read(&part).unwrap();
    // An odd number is negative: -1 and less become 2^64 values.
    let mut negative = whole.clone();
    negative[first_count(&whole)] |= 1;
    // The footer's length, and a footer whose list of columns claims 2^31 elements.
    let end = whole.len();
    let mut long = whole.clone();
    long[end - 5] = 0x7f;
    let mut list = whole.clone();
    let footer = end - 8 - u32::from_le_bytes(whole[end - 8..end - 4].try_into().unwrap()) as usize;
    let at = footer
        + whole[footer..]
            .windows(2)
            .position(|bytes| bytes[0] == 0x19 && bytes[1] & 0xf == 0xc)
            .unwrap();
    list.splice(at + 1..at + 7, [0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]);
    for (what, bytes) in [
        ("negative", negative),
        ("long", long),
        ("list", list),
        ("cut", whole[..end / 2].to_vec()),
    ] {
        fs::write(&part, bytes).unwrap();
        for arguments in [
            &["report", "bad"][..],
            &["compare", "bad", "good"],
            &["compare", "good", "bad"],
        ] {
            refused(folder.path(), arguments, "bad/timeline/part-0.parquet");
        }
        // The others of several folders are on the page.
        let ran =
            ends(command(folder.path()).args(["report", "bad", "good", "-o", "page.html", "--overwrite"]));
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(2), "page.html\n"),
            "{what}: {ran:?}"
        );
        assert!(
            ran.stderr.contains("bad/timeline/part-0.parquet"),
            "{what}: {ran:?}"
        );
        let page = fs::read_to_string(dir("page.html")).unwrap();
        assert!(page.contains("</html>"), "{what}");
    }
    // A FIFO under the name of a part would never end.
    fs::remove_file(&part).unwrap();
    fifo(&part);
    refused(
        folder.path(),
        &["report", "bad"],
        "bad/timeline/part-0.parquet: a FIFO, not a regular file",
    );
    refused(
        folder.path(),
        &["report", "bad", "bad", "-o", "none.html"],
        "no folder could be read",
    );
    assert!(!dir("none.html").exists());
}
