//! The HTML page: the numbers in it are those of the run, nothing in it comes from elsewhere or runs, and it is the same when it is
//! made from stored results. What it looks like is held in a browser (`tests/browser`).

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::ZlibDecoder;
use roce_capture::write::{ByteOrder, InterfaceOptions, PcapngWriter, SectionOptions};
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::{Capture, root};
use crate::command::{command, document, ran};

/// Start time of the runs, so that they give the same bytes: as in `cargo xtask reports`.
const BEGAN: &str = "1767225600";

/// A page taken apart: what is the same in every page, and the inflated blocks of data.
#[derive(PartialEq)]
struct Page {
    frame: String,
    blocks: BTreeMap<String, Vec<u8>>,
}

impl Page {
    fn of(text: &str) -> Self {
        const BLOCK: &str = "<script type=\"application/octet-stream\" id=\"data-";
        let mut parts = text.split(BLOCK);
        let mut frame = parts.next().unwrap().to_owned();
        let mut blocks = BTreeMap::new();
        for part in parts {
            let (name, rest) = part.split_once("\">").unwrap();
            let (text, rest) = rest.split_once("</script>").unwrap();
            let mut bytes = Vec::new();
            ZlibDecoder::new(base64(text).as_slice())
                .read_to_end(&mut bytes)
                .unwrap();
            blocks.insert(name.to_owned(), bytes);
            frame.push_str(rest);
        }
        assert_eq!(
            blocks.keys().collect::<Vec<_>>(),
            ["counters", "document", "head", "series", "tables"]
        );
        Self { frame, blocks }
    }

    fn json(&self, block: &str) -> Value {
        serde_json::from_slice(&self.blocks[block]).unwrap()
    }
}

/// RFC 4648, section 4.
fn base64(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter_map(|letter| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    });
    let (mut bytes, mut bits, mut kept) = (Vec::new(), 0_u32, 0);
    for digit in digits {
        bits = bits << 6 | u32::from(digit);
        kept += 6;
        if kept >= 8 {
            kept -= 8;
            bytes.push((bits >> kept).to_le_bytes()[0]);
            bits &= (1 << kept) - 1;
        }
    }
    bytes
}

fn page(folder: &Path, arguments: &[&str]) -> Page {
    Page::of(&written(folder, arguments))
}

fn written(folder: &Path, arguments: &[&str]) -> String {
    let mut command = command(folder);
    command.env("SOURCE_DATE_EPOCH", BEGAN).args(["--format", "html"]);
    ran(command.args(arguments)).good().stdout
}

/// Takes a page apart, and keeps it in `target/tmp` for the checks in a browser: there it must not run either.
fn kept(what: &str, written: &str) -> Page {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("markup-{what}.html"));
    fs::write(path, written).unwrap();
    Page::of(written)
}

#[test]
fn the_numbers_are_those_of_the_document() {
    let arguments = ["captures/write_bw_loss.pcap", "--bin", "10ms"];
    let page = page(&root(), &arguments);
    let shown = page.json("document");
    let other = document(&root(), arguments);
    for key in [
        "schema_version",
        "totals",
        "taps",
        "vantages",
        "hops",
        "ends",
        "waits",
        "collectives",
        "credits",
        "collective_waits",
        "episodes",
        "steps",
        "findings",
    ] {
        assert_eq!(shown[key], other[key], "{key}");
    }
    assert_eq!(shown["run"]["started"], format!("{BEGAN}000000000"));
    assert_eq!(shown["run"]["elapsed_ns"], 0);
    let head = page.json("head");
    assert_eq!(head["flows_seen"], other["flows"].as_array().unwrap().len());
    assert_eq!(head["width"], 10_000_000);
}

#[test]
fn the_page_of_an_incast_is_small_and_the_same_again() {
    let arguments = [
        "--host-name",
        "h2",
        "--bin",
        "100us",
        "--link-rate",
        "25G",
        "captures/demos/incast-h2.pcapng",
        "captures/demos/incast-h7.pcapng",
    ];
    let first = written(&root(), &arguments);
    assert!(first.len() < 400_000, "{} bytes", first.len());
    assert!(first == written(&root(), &arguments), "the same bytes again");
}

#[test]
fn what_a_capture_says_is_no_markup() {
    const EVIL: &str = "</script><script>alert(1)</script>";
    let folder = tempdir().unwrap();
    let about = SectionOptions {
        comments: vec![EVIL.to_owned()],
        system: Some(EVIL.to_owned()),
        application: Some(EVIL.to_owned()),
    };
    let mut writer = PcapngWriter::with(Vec::new(), ByteOrder::Little, &about).unwrap();
    let interface = writer
        .interface(&InterfaceOptions {
            name: Some(EVIL.to_owned()),
            description: Some(EVIL.to_owned()),
            ..InterfaceOptions::default()
        })
        .unwrap();
    for record in Capture::named("rnr").frames() {
        writer
            .write(interface, record.time, record.original, &record.data)
            .unwrap();
    }
    fs::write(folder.path().join("a.pcapng"), writer.finish().unwrap()).unwrap();
    let page = kept("capture", &written(folder.path(), &["a.pcapng"]));
    assert_eq!(page.json("document")["taps"][0]["interface"], EVIL);
    assert!(!page.frame.contains("alert("));
}

#[test]
#[cfg(feature = "live")]
fn what_a_host_says_is_no_markup() {
    const EVIL: &str = "<script>a()</script>";
    let folder = tempdir().unwrap();
    crate::replay::said_of(&folder.path().join("dir"), EVIL);
    let page = kept("host", &written(folder.path(), &["dir"]));
    assert!(
        page.blocks["tables"]
            .windows(EVIL.len())
            .any(|part| part == EVIL.as_bytes())
    );
    assert!(!page.frame.contains("<script>a"));
}

/// A run with `-o`, in a folder of this name.
#[cfg(feature = "parquet")]
fn stored(folder: &Path, name: &str, arguments: &[&str]) {
    let mut command = command(&root());
    command
        .env("SOURCE_DATE_EPOCH", BEGAN)
        .args(["--format", "none", "-o"]);
    ran(command.arg(folder.join(name)).args(arguments)).good();
}

#[cfg(feature = "parquet")]
fn report(folder: &Path, arguments: &[&str]) -> crate::command::Ran {
    ran(command(folder).arg("report").args(arguments))
}

#[test]
#[cfg(feature = "parquet")]
fn stored_results_give_the_same_page() {
    let folder = tempdir().unwrap();
    let arguments = [
        "captures/demos/incast-h2.pcapng",
        "captures/demos/incast-h7.pcapng",
        "--bin",
        "50us",
    ];
    stored(folder.path(), "dir", &arguments);
    let read = |name: &str| Page::of(&fs::read_to_string(folder.path().join(name)).unwrap());
    let with_run = read("dir/report.html");
    assert!(with_run == page(&root(), &arguments), "-o and --format html");
    assert_eq!(
        report(folder.path(), &["dir", "-o", "again.html"]).good().stdout,
        "again.html\n"
    );
    let again = read("again.html");
    for (name, block) in &with_run.blocks {
        assert!(again.blocks[name] == *block, "{name}");
    }
    fs::remove_file(folder.path().join("dir/report.html")).unwrap();
    report(folder.path(), &["dir"]).good();
    assert!(read("dir/report.html") == with_run);
}

/// Each key figure has its formula, and a value or the reason why there is none.
#[test]
#[cfg(feature = "parquet")]
fn key_figures_of_stored_results() {
    let folder = tempdir().unwrap();
    let ranks: Vec<String> = (1..=4)
        .map(|rank| format!("captures/demos/late-rank-h{rank}.pcapng"))
        .collect();
    let mut arguments: Vec<&str> = ranks.iter().map(String::as_str).collect();
    arguments.extend(["--link-rate", "100G"]);
    stored(folder.path(), "dir", &arguments);
    report(folder.path(), &["dir", "--kpi", "-o", "kpi.html"]).good();
    let page = fs::read_to_string(folder.path().join("kpi.html")).unwrap();
    report(folder.path(), &["dir", "--kpi", "--format", "json"]).good();
    let text = fs::read_to_string(folder.path().join("dir/kpi.json")).unwrap();
    let figures: Value = serde_json::from_str(&text).unwrap();
    let figures = figures["kpis"].as_array().unwrap();
    for figure in figures {
        let name = figure["name"].as_str().unwrap().replace('\'', "&#39;");
        assert!(page.contains(&name), "{figure}");
        assert!(!figure["formula"].as_str().unwrap().is_empty(), "{figure}");
        assert!(
            figure["value"].is_number() || !figure["remark"].as_str().unwrap().is_empty(),
            "{figure}"
        );
    }
    let named = |id: &str| figures.iter().find(|figure| figure["id"] == id).unwrap();
    // Six all-reduces of 256 KiB by four ranks: each sends 2 x 3 / 4 of that.
    assert_eq!(named("jct_ratio")["inputs"]["bytes_of_a_rank"], 393_216.0);
    assert_eq!(named("retransmissions_per_second")["value"], 0.0);
}

#[test]
#[cfg(feature = "parquet")]
fn several_hosts_are_one_page() {
    let folder = tempdir().unwrap();
    for (name, capture) in [
        ("h2", "captures/demos/incast-h2.pcapng"),
        ("h7", "captures/demos/incast-h7.pcapng"),
    ] {
        stored(folder.path(), name, &[capture]);
    }
    report(folder.path(), &["h2", "h7", "-o", "both.html"]).good();
    let both = Page::of(&fs::read_to_string(folder.path().join("both.html")).unwrap());
    let shown = both.json("document");
    let alone = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(name).join("run.json")).unwrap()).unwrap()
    };
    let (h2, h7) = (alone("h2"), alone("h7"));
    let frames = |document: &Value| document["totals"]["frames"].as_u64().unwrap();
    assert_eq!(frames(&shown), frames(&h2) + frames(&h7));
    let taps = shown["taps"].as_array().unwrap();
    assert_eq!(
        taps.iter()
            .map(|tap| tap["tap"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(taps[1]["input"], "h7: captures/demos/incast-h7.pcapng");
    // Verdicts are those of each, with its name.
    let findings = |document: &Value| document["findings"].as_array().unwrap().len();
    assert_eq!(findings(&shown), findings(&h2) + findings(&h7));
    for finding in shown["findings"].as_array().unwrap() {
        assert!(["h2", "h7"].contains(&finding["evidence"]["dataset"].as_str().unwrap()));
    }
    // Both saw the two flows between 10.0.0.2 and 10.0.0.7: one folder's rows count, the other's packets were seen again.
    let packets = |document: &Value| -> u64 {
        let rows = document["flows"].as_array().unwrap().iter();
        let between = rows.filter(|row| {
            [&row["source"], &row["destination"]]
                .iter()
                .any(|host| **host == "10.0.0.2")
        });
        between.map(|row| row["packets"].as_u64().unwrap()).sum()
    };
    let again = shown["totals"]["seen_again"].as_u64().unwrap();
    assert_eq!(again, packets(&h2).min(packets(&h7)));
}

#[test]
#[cfg(feature = "parquet")]
fn what_is_no_dataset_has_no_page() {
    let folder = tempdir().unwrap();
    let refused = report(folder.path(), &["."]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(
        refused.stderr,
        "error: .: holds no results\nhint: `roce-analyze CAPTURE -o DIR` writes them\n"
    );
    assert!(!folder.path().join("report.html").exists());
    let refused = report(folder.path(), &["a", "b"]);
    assert_eq!(
        refused.stderr,
        "error: several folders give one page, and its place is not given\nhint: -o FILE\n"
    );
}
