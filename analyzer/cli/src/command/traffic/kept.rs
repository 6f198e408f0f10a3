//! The folder of a run: the plan, logs, counters, and `run.json` with streams, times and results.

use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use anyhow::anyhow;
use roce_files::{Access, Directory, FilePlace};
use roce_jobs::results::results as parsed;
use roce_jobs::traffic::Role;
use roce_model::text::escape_json;
use roce_remote::traffic::{Log, Machines, RunRecord, RunStatus, collect};
use serde_json::{Value, json};

use super::actions::{name, stream_values, time};
use super::form;
use crate::output::messages;

/// Version of the document's form.
const SCHEMA_VERSION: u32 = 1;

/// A run's new folder.
#[derive(Debug)]
pub(super) struct RunFolder {
    folder: Directory,
}

impl RunFolder {
    /// Makes the folder, which must not be there.
    pub(super) fn new(path: &Path) -> anyhow::Result<Self> {
        let folder = Directory::made(path)?.ok_or_else(|| {
            anyhow!(
                "{}: already exists\nhint: the folder of a run is a new one",
                path.display()
            )
        })?;
        Ok(Self { folder })
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let place = FilePlace::below(&self.folder, name);
        let mut output = place.begin(false, Access::Umask)?;
        let written = output.write_all(text.as_bytes());
        written.map_err(roce_files::Error::io("written", &place.path()))?;
        Ok(output.finish()?)
    }

    /// Fetches all logs, writes them and the document, and says where they are. Returns the clients' results.
    pub(super) fn collect(
        self,
        record: &RunRecord,
        machines: &Machines,
        status: &RunStatus,
        link: Option<u64>,
    ) -> anyhow::Result<Vec<form::Input>> {
        let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        let inputs = fetched(record, machines, true, &|log, text| {
            let file = match (log.number, log.role) {
                (0, _) => format!("{}.counters.during.json", log.host),
                (number, role) => log_name(number, role, &log.host),
            };
            if let Err(error) = self.write(&file, text)
                && let Ok(mut failed) = failed.lock()
            {
                failed.get_or_insert(error);
            }
        });
        if let Some(error) = failed.into_inner().ok().flatten() {
            return Err(error);
        }
        let document = document(record, status, &inputs, link);
        self.write(form::RUN_DOCUMENT, &escape_json(&format!("{document:#}\n")))?;
        messages::wrote(&self.folder.path().display().to_string());
        self.folder.keep();
        Ok(inputs)
    }
}

/// The name of a log: `3.client.gpu1.log`.
fn log_name(number: usize, role: Role, host: &str) -> String {
    format!("{number}.{}.{host}.log", role.name())
}

/// Fetches logs, gives each text to `take`, and returns the clients' results in the order of the streams.
pub(super) fn fetched(
    record: &RunRecord,
    machines: &Machines,
    wants_all: bool,
    take: &(dyn Fn(&Log, &str) + Sync),
) -> Vec<form::Input> {
    let inputs: Mutex<Vec<(usize, form::Input)>> = Mutex::new(Vec::new());
    collect(record, machines, wants_all, &|log| {
        let Ok(text) = &log.text else {
            return;
        };
        take(&log, text);
        let stream = record.streams.iter().find(|stream| stream.number == log.number);
        if let Some(stream) = stream.filter(|_| log.role == Role::Client) {
            let results = parsed(text, None);
            let name = format!("{}: {}", stream.number, name(stream));
            // A test that did not begin has no results, and its stream says why.
            if !results.tool.is_empty()
                && let Ok(mut inputs) = inputs.lock()
            {
                inputs.push((stream.number, form::Input { name, results }));
            }
        }
    });
    let mut inputs = inputs.into_inner().unwrap_or_default();
    inputs.sort_by_key(|(number, _)| *number);
    inputs.into_iter().map(|(_, input)| input).collect()
}

/// The document of a run.
pub(super) fn document(
    record: &RunRecord,
    status: &RunStatus,
    inputs: &[form::Input],
    link: Option<u64>,
) -> Value {
    let mut streams = stream_values(record, status);
    for (value, stream) in streams.iter_mut().zip(&record.streams) {
        value["log"] = log_name(stream.number, Role::Client, &stream.client_host).into();
    }
    json!({
        "schema_version": SCHEMA_VERSION,
        "id": record.id,
        "name": record.name,
        "tool": record.tool,
        "duration_s": record.duration_s,
        "started": time(record.started_ns),
        "streams": streams,
        "results": form::document(inputs, link),
    })
}
