//! The files of one table: collects rows to row groups, writes each group when it is full, under a temporary name
//! until it is published. The dataset decides when that is, and when another part starts.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use polars::polars_utils::compression::ZstdLevel;
use polars::prelude::{PolarsResult, Schema, StatisticsOptions};
use polars_parquet::parquet::metadata::SchemaDescriptor;
use roce_files::Directory;
use roce_model::{Columns, RunKey, Table, TimelineColumns};

use crate::column::{ColumnBuffer, fields};
use crate::encode::{self, ChunkEncoder, Pages};
use crate::error::Error;
use crate::file::FileWriter;
use crate::names::SCHEMA_VERSION;
use crate::options::Options;
use crate::partition::Partition;
use crate::storage::{BegunFile, PendingFile, Storage};

/// The name of a part.
pub(crate) fn part(number: usize) -> String {
    format!("part-{number}.parquet")
}

/// True if a file name is that of a part: `part-N.parquet`.
pub(crate) fn is_part(name: &str) -> bool {
    name.strip_prefix("part-")
        .and_then(|rest| rest.strip_suffix(".parquet"))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True if a file name is that of a part that nobody finished.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.strip_prefix('.')
        .and_then(|rest| rest.strip_suffix(".tmp"))
        .is_some_and(is_part)
}

/// Rows of a row group, of which the timeline has `rows`: wide tables have fewer, so that all take about the same memory.
pub(crate) fn row_group(table: &Table, rows: usize) -> usize {
    let (usual, columns) = (TimelineColumns::TABLE.columns.len(), table.columns.len().max(1));
    (rows / columns).saturating_mul(usual).min(rows).max(1)
}

/// The rows of a row group in the making, and what encodes them.
struct Group {
    columns: Vec<ColumnBuffer>,
    encoder: ChunkEncoder,
}

impl Group {
    fn new(table: Table, level: ZstdLevel) -> Self {
        Self {
            columns: table.columns.iter().map(ColumnBuffer::new).collect(),
            encoder: ChunkEncoder::new(level, statistics()),
        }
    }

    /// The pages of each column, the names of the run first; no rows are left.
    fn encode(&mut self, rows: usize, key: &RunKey, schema: &SchemaDescriptor) -> PolarsResult<Vec<Pages>> {
        let mut described = schema.columns().iter();
        let mut chunks = Vec::with_capacity(schema.columns().len());
        for (value, column) in key.values().into_iter().zip(described.by_ref()) {
            chunks.push(self.encoder.constant_text(value, rows, column)?);
        }
        for column in &mut self.columns {
            column.encode(&mut self.encoder, &mut described, &mut chunks)?;
        }
        Ok(chunks)
    }
}

/// Statistics that pages and chunks have.
pub(crate) fn statistics() -> StatisticsOptions {
    StatisticsOptions {
        min_value: true,
        max_value: true,
        distinct_count: false,
        null_count: true,
        ..StatisticsOptions::empty()
    }
}

/// A row group that a thread encodes: its buffers to use again, its rows and its pages.
type EncodingThread = JoinHandle<(Group, usize, PolarsResult<Vec<Pages>>)>;

/// Where a table's files are.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// `part-0.parquet`, `part-1.parquet` and so on in the table's folder. The file is begun at once.
    Parts(Directory),
    /// One file for a run in a dataset of many. It is begun with its first row group: a table without rows has none.
    Run(Arc<dyn Storage>, Partition),
}

impl Target {
    /// The path of the part `number`, for messages.
    fn shown(&self, table: &Table, number: usize) -> PathBuf {
        match self {
            Self::Parts(folder) => folder.path_of(&part(number)),
            Self::Run(storage, partition) => storage.shown(&partition.file(table.name)),
        }
    }
}

/// A file that is being written.
struct OpenFile {
    pending: Box<dyn PendingFile>,
    /// Its path until it is published, for errors.
    temporary: PathBuf,
    writer: FileWriter<BufWriter<Box<dyn Write + Send>>>,
}

impl OpenFile {
    /// Begins the part `number` of a table.
    fn begin(target: &Target, table: &Table, options: &Options, number: usize) -> Result<Self, Error> {
        let (file, pending): BegunFile = match target {
            Target::Parts(folder) => {
                let (file, unfinished) = folder.begin(&part(number), options.access())?;
                (Box::new(file), Box::new(unfinished))
            }
            Target::Run(storage, partition) => storage.begin(&partition.file(table.name))?,
        };
        let temporary = pending.temporary_path();
        let columns = RunKey::COLUMNS.iter().chain(table.columns);
        let schema: Schema = columns.flat_map(fields).collect();
        let writer = BufWriter::with_capacity(1 << 20, file);
        let writer = batched(writer, options.compression_level, &schema, &temporary)?;
        Ok(Self {
            pending,
            temporary,
            writer,
        })
    }
}

/// A writer of rows to a file, which begins with its magic number.
pub(crate) fn batched<W: Write>(
    file: W,
    compression_level: i32,
    schema: &Schema,
    path: &Path,
) -> Result<FileWriter<W>, Error> {
    ZstdLevel::try_new(compression_level)
        .and_then(|level| FileWriter::begin(file, schema, encode::options(level, statistics())))
        .map_err(Error::parquet("write", path))
}

/// Writes the footer of a file with rows of `table`. The number of bytes of the file.
pub(crate) fn end<W: Write>(writer: &mut FileWriter<W>, table: &Table) -> PolarsResult<u64> {
    let version = env!("CARGO_PKG_VERSION");
    let pairs = vec![
        ("roce-analyze.schema_version", SCHEMA_VERSION.to_string()),
        ("roce-analyze.version", version.to_owned()),
        ("roce-analyze.table", table.name.to_owned()),
    ];
    writer.end(version, pairs)
}

/// The level of the compression.
fn level(options: &Options) -> PolarsResult<ZstdLevel> {
    ZstdLevel::try_new(options.compression_level)
}

/// Rows and bytes of the files of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Size {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// Writes the parts of a table, one after the other.
pub(crate) struct TableWriter {
    target: Target,
    table: Table,
    key: RunKey,
    options: Options,
    /// The number of the part that is being written.
    number: usize,
    /// The file of that part, once it is begun.
    file: Option<OpenFile>,
    level: ZstdLevel,
    group: Group,
    encoding: Option<EncodingThread>,
    /// Buffers of a group that is written.
    spare: Option<Group>,
    rows: usize,
    row_group: usize,
    /// The part has no rows, not even written ones.
    is_empty: bool,
    /// Size of all parts.
    size: Size,
}

impl TableWriter {
    /// Begins the first part.
    pub(crate) fn create(
        target: Target,
        table: &Table,
        key: &RunKey,
        options: &Options,
    ) -> Result<Self, Error> {
        Self::begin(target, table, key, options, 0, Size::default())
    }

    /// Begins the part `number`.
    fn begin(
        target: Target,
        table: &Table,
        key: &RunKey,
        options: &Options,
        number: usize,
        size: Size,
    ) -> Result<Self, Error> {
        let file = match &target {
            Target::Parts(_) => Some(OpenFile::begin(&target, table, options, number)?),
            Target::Run(..) => None,
        };
        let level = level(options).map_err(Error::parquet("write", &target.shown(table, number)))?;
        Ok(Self {
            target,
            table: *table,
            key: key.clone(),
            options: *options,
            number,
            file,
            level,
            group: Group::new(*table, level),
            encoding: None,
            spare: None,
            rows: 0,
            row_group: row_group(table, options.row_group),
            is_empty: true,
            size,
        })
    }

    /// The table's name.
    pub(crate) const fn name(&self) -> &'static str {
        self.table.name
    }

    /// Rows and bytes of all parts that are complete.
    pub(crate) const fn size(&self) -> Size {
        self.size
    }

    /// The file of the part, begun if need be.
    fn file(&mut self) -> Result<&mut OpenFile, Error> {
        if self.file.is_none() {
            let file = OpenFile::begin(&self.target, &self.table, &self.options, self.number)?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| Error::Finished {
            dir: self.target.shown(&self.table, self.number),
        })
    }

    /// Adds rows, and writes a row group when it is full.
    pub(crate) fn append<C: Columns>(&mut self, rows: &C) -> Result<(), Error> {
        let capacity = self.row_group.saturating_add(rows.len());
        let mut columns = self.group.columns.iter_mut();
        rows.for_each(|_, data| {
            if let Some(column) = columns.next() {
                column.extend(data, capacity);
            }
        });
        self.rows += rows.len();
        self.is_empty &= rows.is_empty();
        if self.rows >= self.row_group {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes the collected rows as a row group. With `parallel` they are encoded on a thread of their own, while the next ones come.
    fn flush(&mut self) -> Result<(), Error> {
        self.write_encoding()?;
        let schema = Arc::clone(self.file()?.writer.schema());
        let rows = std::mem::take(&mut self.rows);
        if self.options.parallel {
            let spare = self.spare.take();
            let spare = spare.unwrap_or_else(|| Group::new(self.table, self.level));
            let mut group = std::mem::replace(&mut self.group, spare);
            let key = self.key.clone();
            let encode = move || {
                let chunks = group.encode(rows, &key, &schema);
                (group, rows, chunks)
            };
            let thread = thread::Builder::new().spawn(encode);
            let failed = Error::io("start a thread to encode", Path::new(self.table.name));
            self.encoding = Some(thread.map_err(failed)?);
            return Ok(());
        }
        let chunks = self.group.encode(rows, &self.key, &schema);
        self.write(rows, chunks)
    }

    /// Writes the row group that is being encoded, if there is one.
    fn write_encoding(&mut self) -> Result<(), Error> {
        let Some(encoding) = self.encoding.take() else {
            return Ok(());
        };
        match encoding.join() {
            Ok((group, rows, chunks)) => {
                self.spare = Some(group);
                self.write(rows, chunks)
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn write(&mut self, rows: usize, chunks: PolarsResult<Vec<Pages>>) -> Result<(), Error> {
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        let file = self.file()?;
        chunks
            .and_then(|chunks| file.writer.write_row_group(rows, &chunks))
            .map_err(Error::parquet("write", &file.temporary))?;
        self.size.rows = self.size.rows.saturating_add(rows);
        Ok(())
    }

    /// Writes what is left and the footer. The file still has its temporary name.
    pub(crate) fn complete(&mut self) -> Result<(), Error> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.write_encoding()?;
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let bytes = end(&mut file.writer, &self.table).map_err(Error::parquet("write", &file.temporary))?;
        self.size.bytes = self.size.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Completes the part that is being written, gives it its name, and begins the next one; nothing of it when it has no rows.
    pub(crate) fn next_part(&mut self) -> Result<(), Error> {
        if self.is_empty {
            return Ok(());
        }
        self.complete()?;
        let next = Self::begin(
            self.target.clone(),
            &self.table,
            &self.key,
            &self.options,
            self.number + 1,
            self.size,
        )?;
        let ended = std::mem::replace(self, next);
        match ended.file {
            Some(mut file) => file.pending.publish(),
            None => Ok(()),
        }
    }

    /// Flushes the complete last part to where it will stay: to the disk, if it replaces an older one.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        match &mut self.file {
            Some(file) => file.pending.sync(),
            None => Ok(()),
        }
    }

    /// Gives the complete last part its name, in place of an older one, and removes the parts of an older dataset. A later part without rows
    /// keeps its temporary name, and goes with its writer.
    pub(crate) fn publish(&mut self) -> Result<(), Error> {
        if self.is_empty && self.number > 0 {
            return Ok(());
        }
        if let Some(file) = &mut self.file {
            file.pending.publish()?;
        }
        match &self.target {
            Target::Parts(_) if self.options.live => Ok(()),
            Target::Parts(folder) => {
                let own = part(self.number);
                for old in folder.names()?.iter().filter(|name| is_part(name)) {
                    if *old != own {
                        folder.remove(old)?;
                    }
                }
                Ok(())
            }
            Target::Run(..) if self.file.is_some() => Ok(()),
            // An older run of this name had rows.
            Target::Run(..) => self.remove(),
        }
    }

    /// Removes what an older run of this name has in the table; of a dataset of one run nothing.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        match &self.target {
            Target::Parts(_) => Ok(()),
            Target::Run(storage, partition) => storage.remove(&partition.file(self.table.name)),
        }
    }
}

/// The files of a folder whose names are such, in order of their part numbers; none when there is no folder.
pub(crate) fn files(folder: &Path, such: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound) => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read the folder", folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("read the folder", folder))?;
        if entry.file_name().to_str().is_some_and(&such) {
            found.push(entry.path());
        }
    }
    // A longer name has a larger number.
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found)
}
