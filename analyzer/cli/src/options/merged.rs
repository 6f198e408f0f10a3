//! `--merge`: documents of a job that are read before a run, and joined with its results at the end. The content says what each is.

mod convert;

use std::io::{BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use roce_capture::ExpandedBytes;
use roce_jobs::documents::{
    DocumentKind, InspectorReader, MAX_DOCUMENT_BYTES, MAX_PREFIX, flight_recorder, inspector_metrics,
    kind_of, ras,
};
use roce_model::{Address, JobLog, JobWindow, RankEnd};
use roce_pipeline::{MAX_TRACES, Trace, TraceFile, Traces};

/// Windows of collectives of all documents.
const MAX_WINDOWS: usize = 1 << 18;

/// Documents that options name.
#[derive(Clone, Debug, Default)]
pub(crate) struct MergedDocuments {
    documents: Arc<[(Trace, Option<Address>)]>,
    /// Files that end early, and why.
    pub(crate) cut: Vec<(String, String)>,
    /// Logs of NCCL among them.
    pub(crate) logs: Vec<PathBuf>,
}

impl MergedDocuments {
    /// Reads the documents that options name.
    ///
    /// # Errors
    /// When one cannot be read, or is no document that is known.
    pub(crate) fn read(files: &[String], limit: Option<u64>) -> anyhow::Result<Self> {
        if files.len() > MAX_TRACES {
            bail!(
                "--merge: {} documents; at most {MAX_TRACES} can be merged",
                files.len()
            );
        }
        let mut documents = Vec::with_capacity(files.len());
        let (mut logs, mut cut) = (Vec::new(), Vec::new());
        for file in files {
            let file = TraceFile::parse(file);
            match document(&file, limit)? {
                Some(trace) => {
                    if let Some(reason) = &trace.is_cut {
                        cut.push((trace.file.clone(), reason.clone()));
                    }
                    documents.push((trace, file.address));
                }
                None => logs.push(file.path),
            }
        }
        Ok(Self {
            documents: documents.into(),
            cut,
            logs,
        })
    }

    /// The documents for a run; `None`: there are none.
    pub(crate) fn traces(&self) -> Option<Traces> {
        (!self.documents.is_empty()).then(|| Traces::new(Arc::clone(&self.documents)))
    }

    /// Adds to a log what documents say before packets are looked at: owners of queue pairs, and times of collectives.
    pub(crate) fn add_to(&self, log: &mut JobLog) {
        for (trace, address) in &*self.documents {
            let mut calls = trace.calls.iter();
            let first = calls.next().filter(|first| {
                calls.all(|call| (call.rank, &call.communicator) == (first.rank, &first.communicator))
            });
            if let (Some(events), Some(address), Some(call)) = (&trace.network, address, first) {
                for number in &events.queue_pairs {
                    let end = RankEnd {
                        rank: call.rank,
                        communicator: call.communicator.as_deref().map(Arc::from),
                        ..RankEnd::default()
                    };
                    log.ranks.insert(*address, *number, end);
                }
            }
            let room = MAX_WINDOWS.saturating_sub(log.windows.len());
            let windows: Vec<JobWindow> = convert::windows(trace).take(room).collect();
            log.windows.extend(windows);
        }
    }
}

/// Reads the traces and other documents that options name, but for logs.
///
/// # Errors
/// As [`MergedDocuments::read`], and when one is a log.
#[cfg(feature = "parquet")]
pub(crate) fn without_logs(files: &[String], limit: Option<u64>) -> anyhow::Result<MergedDocuments> {
    let merged = MergedDocuments::read(files, limit)?;
    if let Some(log) = merged.logs.first() {
        bail!(
            "{}: a log of NCCL names flows while captures are analysed\nhint: --nccl-log with the captures",
            log.display()
        );
    }
    Ok(merged)
}

/// True for a text that is no JSON: a log whose first error stands far behind. An array of JSON has a kind.
fn is_plain_text(prefix: &[u8]) -> bool {
    let first = prefix.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_some_and(|byte| byte.is_ascii_graphic() && *byte != b'{') && !prefix.contains(&0)
}

/// Reads one document; `None`: it is a log.
fn document(place: &TraceFile, limit: Option<u64>) -> anyhow::Result<Option<Trace>> {
    let file = place.path.display().to_string();
    let mut input = ExpandedBytes::open(&place.path, limit)?;
    let mut prefix = Vec::new();
    let read = (&mut input).take(MAX_PREFIX as u64).read_to_end(&mut prefix);
    // The reader of the whole says that it is too long.
    if let Err(error) = read
        && !ExpandedBytes::is_too_long(&error)
    {
        return Err(error).with_context(|| format!("{file}: cannot be read"));
    }
    let kind = kind_of(&prefix);
    let is_text = is_plain_text(&prefix);
    let mut input = Cursor::new(prefix).chain(input);
    let mut whole = || {
        let mut bytes = Vec::new();
        let read = (&mut input).take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes);
        read.with_context(|| format!("{file}: cannot be read"))?;
        if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
            bail!("{file}: longer than {MAX_DOCUMENT_BYTES} bytes; such a document is shorter");
        }
        Ok(bytes)
    };
    Ok(Some(match kind {
        Some(DocumentKind::Log) => return Ok(None),
        // The reader of logs says what a text is not.
        None if is_text => return Ok(None),
        Some(DocumentKind::Inspector) => {
            let dump = InspectorReader::new(&file).read(BufReader::new(input))?;
            convert::inspector(file, &dump)
        }
        Some(DocumentKind::InspectorMetrics) => {
            let metrics = inspector_metrics(&whole()?, &file)?;
            convert::metrics(file, &metrics)
        }
        Some(DocumentKind::Ras) => {
            let answers = ras(&whole()?, &file)?;
            convert::answers(file, &answers)
        }
        Some(DocumentKind::FlightRecorder) => {
            let recorder = flight_recorder(&whole()?, &file)?;
            convert::recorder(file, &recorder)
        }
        Some(DocumentKind::Trace) | None => Trace::read(input, file, limit)?,
    }))
}
