//! The captures of the repository, their frames, and what tshark counted in them (`tests/data/golden`).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use roce_capture::{Options, Reader};
use roce_model::{FlowRow, Sink, SinkError, Time};

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    // Cargo's current value: a program that was built for another checkout in the same target folder
    // knows that one's path.
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

/// All captures below a folder, in the order of their names.
pub(crate) fn captures_below(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            captures_below(&path, into);
        } else if path
            .extension()
            .is_some_and(|ending| ending == "pcap" || ending == "pcapng")
        {
            into.push(path);
        }
    }
    into.sort();
}

/// The flows of a run.
#[derive(Default)]
struct Flows(Vec<FlowRow>);

impl Sink for Flows {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.0.extend_from_slice(rows);
        Ok(())
    }
}

/// The flows of a capture.
pub(crate) fn flows(path: &Path, options: roce_flow::Options) -> Vec<FlowRow> {
    let reader = Reader::open(path, &Options::default()).unwrap();
    let mut flows = Flows::default();
    roce_pipeline::analyse(
        roce_capture::Merge::new(vec![reader]),
        1,
        options,
        vec![&mut flows],
    )
    .unwrap();
    flows.0
}

/// One capture of the repository.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    /// Its file's name without the ending.
    pub(crate) name: String,
    /// From the top of the repository.
    pub(crate) path: String,
}

impl Capture {
    /// The capture of that name.
    #[track_caller]
    pub(crate) fn named(name: &str) -> Self {
        all()
            .into_iter()
            .find(|capture| capture.name == name)
            .unwrap_or_else(|| panic!("no capture {name}"))
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(root().join(&self.path)).expect("the capture is there")
    }

    /// Its frames.
    pub(crate) fn frames(&self) -> Vec<Record> {
        frames(&root().join(&self.path))
    }

    /// Counts by tshark.
    pub(crate) fn golden(&self) -> Golden {
        Golden::read(
            &root()
                .join("tests/data/golden")
                .join(format!("{}.txt", self.name)),
        )
    }
}

fn of(folder: &str) -> Vec<Capture> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut captures: Vec<Capture> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pcap"))
        .map(|path| {
            let name = path
                .file_stem()
                .expect("a name")
                .to_str()
                .expect("UTF-8")
                .to_owned();
            Capture {
                path: format!("{folder}/{name}.pcap"),
                name,
            }
        })
        .collect();
    captures.sort_by(|a, b| a.name.cmp(&b.name));
    captures
}

/// Those of `captures/`.
pub(crate) fn samples() -> Vec<Capture> {
    of("captures")
}

/// Those, and the ones that only tests use.
pub(crate) fn all() -> Vec<Capture> {
    let mut captures = samples();
    captures.extend(of("tests/data"));
    captures
}

/// A frame as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) time: Time,
    /// Bytes on the wire.
    pub(crate) original: u32,
    /// Bytes that were kept.
    pub(crate) data: Vec<u8>,
}

/// The frames of a file.
pub(crate) fn frames(path: &Path) -> Vec<Record> {
    let mut reader = Reader::open(path, &Options::default()).expect("a capture");
    let mut records = Vec::new();
    while let Some(batch) = reader.next_batch().expect("a whole capture") {
        records.extend(batch.frames().iter().map(|frame| Record {
            time: frame.time,
            original: frame.original,
            data: batch.bytes(frame).to_vec(),
        }));
    }
    records
}

/// The counts of one golden file. A test reads each of them: [`Golden::all_read`].
#[derive(Debug)]
pub(crate) struct Golden {
    counts: BTreeMap<String, u64>,
    read: RefCell<BTreeSet<String>>,
}

/// Counts of a golden file for one flow: its source, destination and QPN, as in
/// `10.0.0.1>10.0.0.2>0x000011`.
pub(crate) type ByFlow = BTreeMap<String, BTreeMap<String, u64>>;

impl Golden {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let counts = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let (key, value) = line.rsplit_once(' ').expect("a key and a value");
                (key.to_owned(), value.parse().expect("a number"))
            })
            .collect();
        Self {
            counts,
            read: RefCell::default(),
        }
    }

    /// A count that every golden file has.
    #[track_caller]
    pub(crate) fn of(&self, key: &str) -> u64 {
        self.read.borrow_mut().insert(key.to_owned());
        *self
            .counts
            .get(key)
            .unwrap_or_else(|| panic!("the golden file has no {key}"))
    }

    /// The counts whose keys begin with `prefix`, by the rest of their key.
    pub(crate) fn those(&self, prefix: &str) -> BTreeMap<String, u64> {
        let found = self.counts.iter().filter_map(|(key, value)| {
            let rest = key.strip_prefix(prefix)?;
            self.read.borrow_mut().insert(key.clone());
            Some((rest.to_owned(), *value))
        });
        found.collect()
    }

    /// The counts of each flow. What a flow has none of is left out.
    pub(crate) fn flows(&self) -> ByFlow {
        let mut flows = ByFlow::new();
        for (key, value) in self.those("flow.") {
            let (flow, what) = key.rsplit_once('.').expect("a flow and a count");
            flows
                .entry(flow.to_owned())
                .or_default()
                .insert(what.to_owned(), value);
        }
        flows
    }

    /// Holds that nothing in the file was left uncompared.
    #[track_caller]
    pub(crate) fn all_read(&self) {
        let read = self.read.borrow();
        let left: Vec<_> = self.counts.keys().filter(|key| !read.contains(*key)).collect();
        assert!(left.is_empty(), "never compared: {left:?}");
    }
}
