//! Samples that another run left: the table `samples` of its dataset, the notes of its recording, or a file of JSON lines. Lines are rows
//! of the table, or requests of OTLP, as a Collector's file exporter writes them.

mod lines;
mod otlp;

use std::ops::Range;
use std::path::{Path, PathBuf};

use roce_capture::{Correction, Options, Reader};
use roce_model::{Columns, RecordingStart, SampleColumns, SampleRow, Sink, SinkError};

use self::lines::Lines;
pub use self::lines::sample_row;
use self::otlp::OtlpRows;
use crate::error::Error;

/// Rows that go to the sinks together.
const BATCH: usize = 4096;

/// Samples in a folder that `live -o` or `host counters -o` wrote, or in a file of JSON lines.
#[derive(Clone, Debug)]
pub struct StoredSamples {
    dir: PathBuf,
    kind: Kind,
    /// The file itself, if it is one of JSON lines.
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    #[cfg(feature = "parquet")]
    Dataset,
    Recording,
    Lines,
}

/// Change of the samples on their way: only those of a time, moved to another clock.
#[derive(Clone, Debug)]
pub(crate) struct MovedSamples {
    /// Times that are wanted, in ns since the epoch, on the other clock.
    pub(crate) range: Range<u64>,
    /// Correction of the folder's clock.
    pub(crate) correction: Option<Correction>,
}

impl StoredSamples {
    /// The samples in `dir`: of a folder with both, the dataset's. A regular file is one of JSON lines.
    ///
    /// # Errors
    /// It has neither a table `samples` nor a recording.
    pub fn find(dir: &Path) -> Result<Self, Error> {
        if dir.is_file() {
            return Ok(Self {
                dir: dir.parent().map_or_else(PathBuf::new, Path::to_path_buf),
                kind: Kind::Lines,
                file: Some(dir.to_path_buf()),
            });
        }
        let found = |kind| Self {
            dir: dir.to_path_buf(),
            kind,
            file: None,
        };
        #[cfg(feature = "parquet")]
        if dir.join(SampleColumns::TABLE.name).is_dir() {
            return Ok(found(Kind::Dataset));
        }
        if dir.join(RecordingStart::FILE).is_file() {
            return Ok(found(Kind::Recording));
        }
        Err(Error::NoSamples {
            dir: dir.to_path_buf(),
        })
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file, or the folder.
    pub(crate) fn place(&self) -> &Path {
        self.file.as_deref().unwrap_or(&self.dir)
    }

    /// Gives all of them to the sinks, some thousand rows at a time. Returns what a person should know about those that were left out.
    ///
    /// # Errors
    /// When they cannot be read, or a sink fails.
    pub(crate) fn replay(
        &self,
        moved: &MovedSamples,
        sinks: &mut [&mut dyn Sink],
    ) -> Result<Option<String>, SinkError> {
        let mut columns = SampleColumns::default();
        let mut emit = |rows: &mut Vec<SampleRow>| -> Result<(), SinkError> {
            for row in rows.iter_mut() {
                if let Some(correction) = &moved.correction {
                    row.time = correction.correct(row.time);
                }
            }
            rows.retain(|row| moved.range.contains(&row.time.0));
            columns.clear();
            columns.extend(rows);
            rows.clear();
            if columns.is_empty() {
                return Ok(());
            }
            sinks.iter_mut().try_for_each(|sink| sink.samples(&columns))
        };
        match self.kind {
            #[cfg(feature = "parquet")]
            Kind::Dataset => {
                for rows in roce_parquet::Rows::<SampleColumns>::open(&self.dir)? {
                    emit(&mut rows?)?;
                }
                Ok(None)
            }
            Kind::Lines => {
                let Some(file) = &self.file else { return Ok(None) };
                let mut rows = Vec::new();
                let mut lines = Lines::open(file)?;
                if lines.are_otlp()? {
                    let mut requests = OtlpRows::new(lines);
                    while requests.next_rows(&mut rows)? {
                        emit(&mut rows)?;
                    }
                    return Ok(requests.left_out());
                }
                for row in lines.by_ref() {
                    rows.push(row?);
                    if rows.len() >= BATCH {
                        emit(&mut rows)?;
                    }
                }
                emit(&mut rows)?;
                Ok(lines.left_out())
            }
            Kind::Recording => {
                let path = self.dir.join(RecordingStart::FILE);
                let mut reader = Reader::open(&path, &Options::default())?;
                let mut rows = Vec::new();
                while let Some(batch) = reader.next_batch()? {
                    let notes = batch.notes().iter().filter(|note| note.kind == SampleRow::BLOCK);
                    rows.extend(notes.filter_map(|note| SampleRow::decode(batch.note(note))));
                    if rows.len() >= BATCH {
                        emit(&mut rows)?;
                    }
                }
                emit(&mut rows)?;
                Ok(None)
            }
        }
    }
}
