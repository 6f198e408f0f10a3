//! Files of a run's counters: rows of the table `samples` as JSON lines, who is connected to whom, and a recorded folder for each
//! switch.

use std::io::Write as _;
use std::path::Path;

use roce_files::{Access, Directory, FilePlace};
use roce_model::SampleRow;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Counters, PortReading, sonic};
use crate::{Error, Truth};

/// Columns of a row of the table `samples`, in its order. An absent value is null.
#[derive(Serialize)]
struct SampleLine<'a> {
    /// As text: it is beyond what a browser's numbers hold.
    time: String,
    source: &'a str,
    node: &'a str,
    object: &'a str,
    counter: &'a str,
    priority: Option<u8>,
    queue: Option<&'a str>,
    detail: Option<&'a str>,
    kind: &'a str,
    value: f64,
    change: Option<f64>,
    interval_ns: Option<u64>,
    unit: &'a str,
    reset: bool,
}

impl<'a> SampleLine<'a> {
    fn new(row: &'a SampleRow) -> Self {
        Self {
            time: row.time.0.to_string(),
            source: row.source,
            node: &row.node,
            object: &row.object,
            counter: row.counter,
            priority: row.priority,
            queue: row.queue.as_deref(),
            detail: row.detail.as_deref(),
            kind: row.kind,
            value: row.value,
            change: row.change,
            interval_ns: row.interval_ns,
            unit: row.unit,
            reset: row.reset,
        }
    }
}

/// Name of the file that has the answer to a command: characters outside `[A-Za-z0-9.-]` become `_`, and the ending says the form.
fn file_name(command: &str, text: &str) -> String {
    let ending = if text.starts_with('{') { "json" } else { "txt" };
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') {
            c
        } else {
            '_'
        }
    };
    format!("{}.{ending}", command.chars().map(kept).collect::<String>())
}

impl Counters {
    /// Name of the file with the rows.
    pub const SAMPLES: &'static str = "samples.jsonl";
    /// Name of the file that says who is connected to whom.
    pub const NEIGHBORS: &'static str = "neighbors.json";
    /// Name of the file with the cables and addresses, as `--inventory` reads them.
    pub const INVENTORY: &'static str = "fabric.toml";
    /// Folder of a switch with its answers at the first reading, and that with those at the last.
    pub const MOMENTS: [&'static str; 2] = ["before", "after"];

    /// Writes `samples.jsonl`, `neighbors.json`, `fabric.toml` and, for each switch, `SWITCH/before` and `SWITCH/after` into a folder,
    /// which is made if it is not there. Files that are there already are replaced where `overwrite` is set.
    ///
    /// # Errors
    /// When a file is there and `overwrite` is not set, or cannot be written.
    pub fn write(&self, dir: &Path, truth: &Truth, overwrite: bool) -> Result<(), Error> {
        let folder = Directory::named(dir, Access::Umask)?;
        for name in [Self::SAMPLES, Self::INVENTORY, Self::NEIGHBORS] {
            FilePlace::below(&folder, name).refuse_taken(overwrite)?;
        }
        self.write_rows(
            &FilePlace::below(&folder, Self::SAMPLES),
            Self::SAMPLES,
            overwrite,
        )?;
        write_text(&folder, Self::INVENTORY, &self.inventory(truth), overwrite)?;
        write_text(
            &folder,
            Self::NEIGHBORS,
            &format!("{:#}\n", self.neighbors()),
            overwrite,
        )?;
        let moments = [self.readings.first(), self.readings.last()];
        for node in self.switches() {
            let own = folder.below(node, Access::Umask)?;
            for (name, reading) in Self::MOMENTS.iter().zip(moments) {
                if let Some(reading) = reading {
                    self.record(&own.below(name, Access::Umask)?, node, reading, overwrite)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the rows alone, as JSON lines.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_samples(&self, path: &Path, overwrite: bool) -> Result<(), Error> {
        self.write_rows(&FilePlace::named(path)?, &path.display().to_string(), overwrite)
    }

    fn write_rows(&self, place: &FilePlace, name: &str, overwrite: bool) -> Result<(), Error> {
        let mut output = place.begin(overwrite, Access::Umask)?;
        let failed = |source: std::io::Error| Error::Write {
            file: name.to_owned(),
            source,
        };
        for row in self.rows() {
            serde_json::to_writer(&mut output, &SampleLine::new(&row))
                .map_err(|error| failed(error.into()))?;
            output.write_all(b"\n").map_err(failed)?;
        }
        Ok(output.finish()?)
    }

    /// Each link of the network, once: both ends, with their names in a recorded SONiC switch.
    pub fn neighbors(&self) -> Value {
        let end = |place: usize| {
            let port = &self.ports[place];
            json!({
                "node": port.node,
                "port": port.name,
                "kind": if port.is_host { "host" } else { "switch" },
                "sonic_port": (!port.is_host).then_some(&port.sonic),
            })
        };
        let links = self.ports.iter().enumerate();
        let links = links.filter(|(place, port)| *place < port.peer);
        let links = links.map(|(place, port)| {
            json!({ "a": end(place), "b": end(port.peer), "rate_bits_per_second": port.rate.0 })
        });
        json!({ "links": links.collect::<Vec<_>>() })
    }

    /// Names of the switches, each once.
    fn switches(&self) -> Vec<&str> {
        let ports = self.ports.iter().filter(|port| !port.is_host);
        let mut names: Vec<&str> = ports.map(|port| port.node.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn record(
        &self,
        folder: &Directory,
        node: &str,
        reading: &PortReading,
        overwrite: bool,
    ) -> Result<(), Error> {
        for (command, text) in sonic::dump(node, &self.ports, reading) {
            write_text(folder, &file_name(command, &text), &text, overwrite)?;
        }
        Ok(())
    }
}

fn write_text(folder: &Directory, name: &str, text: &str, overwrite: bool) -> Result<(), Error> {
    let mut output = FilePlace::below(folder, name).begin(overwrite, Access::Umask)?;
    output.write_all(text.as_bytes()).map_err(|source| Error::Write {
        file: name.to_owned(),
        source,
    })?;
    Ok(output.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_model::{Columns as _, SampleColumns};

    #[test]
    fn a_line_has_the_columns_of_the_table() {
        let row = SampleRow::default();
        let text = serde_json::to_string(&SampleLine::new(&row)).unwrap();
        let columns = SampleColumns::TABLE.columns.iter().map(|column| column.name);
        // In their order, too.
        let mut rest = text.as_str();
        for name in columns.clone() {
            let place = rest.find(&format!("\"{name}\":"));
            rest = &rest[place.unwrap_or_else(|| panic!("{name}: {text}"))..];
        }
        let line: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(line.len(), columns.count());
    }

    #[test]
    fn commands_name_their_files() {
        assert_eq!(
            file_name("sonic-db-dump -n COUNTERS_DB -k 'COUNTERS:oid:*' -y", "{}"),
            "sonic-db-dump_-n_COUNTERS_DB_-k__COUNTERS_oid____-y.json"
        );
        assert_eq!(file_name("show lldp table", "LocalPort"), "show_lldp_table.txt");
    }
}
