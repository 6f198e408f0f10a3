//! Compares three writers of Parquet on the timeline of a stored dataset: the writer of this crate, polars' own, and that of `parquet`
//! (arrow-rs) with its typed column writers.
//!
//! `cargo run --release --manifest-path tests/crates/writers/Cargo.toml -- DATASET`. The least time of five rounds counts, in turns; each round includes
//! what turns rows of the analysis into the writer's columns. All write zstd at level 1, row groups of 131,072 rows, and statistics.

#![expect(clippy::print_stdout, reason = "a command for a person at a terminal")]

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parquet::basic::{Compression, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use polars::polars_utils::compression::ZstdLevel as PolarsZstdLevel;
use polars::prelude::{
    AnyValue, BooleanChunked, Column, DataFrame, DataType, Int32Chunked, Int64Chunked, IntoColumn,
    NewChunkedArray, ParquetCompression, ParquetWriter, Scalar, StatisticsOptions,
};
use roce_model::{ColumnType, Columns, Data, RunKey, Sink, TimelineColumns, Values};
use roce_parquet::{Dataset, Options, Rows};

const ROW_GROUP: usize = 1 << 17;
const ROUNDS: usize = 5;

/// A column of a row group, as both of the other writers take it.
enum TypedColumn {
    I32(Vec<i32>, Vec<bool>),
    I64(Vec<i64>, Vec<bool>),
}

fn extend<S: Copy + Default, T: Copy + Default>(
    from: &Values<S>,
    values: &mut Vec<T>,
    valid: &mut Vec<bool>,
    store: impl Fn(S) -> T,
) {
    for value in from.iter() {
        values.push(value.map_or_else(T::default, |value| store(*value)));
        valid.push(value.is_some());
    }
}

/// The columns of a table, and the three that name the run.
struct Group {
    columns: Vec<(String, TypedColumn)>,
    rows: usize,
}

impl Group {
    fn new() -> Self {
        let mut columns = Vec::new();
        for column in TimelineColumns::TABLE.columns {
            let typed = match column.kind {
                ColumnType::U32 => TypedColumn::I32(Vec::new(), Vec::new()),
                _ => TypedColumn::I64(Vec::new(), Vec::new()),
            };
            columns.push((column.name.to_owned(), typed));
            if let Some(name) = column.nanoseconds() {
                columns.push((name, TypedColumn::I64(Vec::new(), Vec::new())));
            }
        }
        Self { columns, rows: 0 }
    }

    fn append(&mut self, rows: &TimelineColumns) {
        let mut columns = self.columns.iter_mut().map(|(_, typed)| typed);
        rows.for_each(|_, data| match (columns.next(), data) {
            (Some(TypedColumn::I32(values, valid)), Data::U32(from)) => {
                extend(from, values, valid, |value| {
                    i32::try_from(value).unwrap_or(i32::MAX)
                });
            }
            (Some(TypedColumn::I64(values, valid)), Data::U64(from) | Data::Id(from)) => {
                extend(from, values, valid, |value| {
                    i64::try_from(value).unwrap_or(i64::MAX)
                });
            }
            (Some(TypedColumn::I64(values, valid)), Data::Time(from)) => {
                extend(from, values, valid, |value| {
                    i64::try_from(value / 1_000).unwrap_or(i64::MAX)
                });
                if let Some(TypedColumn::I64(values, valid)) = columns.next() {
                    extend(from, values, valid, |value| {
                        i64::try_from(value).unwrap_or(i64::MAX)
                    });
                }
            }
            _ => {}
        });
        self.rows += rows.len();
    }
}

fn ours(batches: &[TimelineColumns], folder: &Path) -> Result<u64, Box<dyn Error>> {
    let key = RunKey {
        run_id: "0123456789abcdef".into(),
        host: "host".into(),
        capture: "capture".into(),
    };
    let mut dataset = Dataset::create(
        folder,
        &key,
        &Options {
            overwrite: true,
            ..Options::default()
        },
    )?;
    for batch in batches {
        dataset.timeline(batch).map_err(|error| error.to_string())?;
    }
    dataset.complete(&roce_model::RunSummary::default())?;
    dataset.publish()?;
    Ok(fs::metadata(folder.join("timeline/part-0.parquet"))?.len())
}

fn polars(batches: &[TimelineColumns], folder: &Path) -> Result<u64, Box<dyn Error>> {
    let path = folder.join("polars.parquet");
    let frame = |group: Group| -> Result<DataFrame, Box<dyn Error>> {
        let rows = group.rows;
        let name = |name: &'static str, value: &str| {
            Column::new_scalar(
                name.into(),
                Scalar::new(DataType::String, AnyValue::StringOwned(value.into())),
                rows,
            )
        };
        let mut columns = vec![
            name("run_id", "0123456789abcdef"),
            name("host", "host"),
            name("capture", "capture"),
        ];
        for (name, typed) in group.columns {
            let bits = |valid: Vec<bool>| {
                let mask = BooleanChunked::from_slice("".into(), &valid);
                let bits = mask.downcast_iter().next().map(|mask| mask.values().clone());
                bits.filter(|_| valid.contains(&false))
            };
            let name = name.as_str().into();
            columns.push(match typed {
                TypedColumn::I32(values, valid) => {
                    Int32Chunked::from_vec_validity(name, values, bits(valid)).into_column()
                }
                TypedColumn::I64(values, valid) => {
                    Int64Chunked::from_vec_validity(name, values, bits(valid)).into_column()
                }
            });
        }
        Ok(DataFrame::new(rows, columns)?)
    };
    let first = frame(Group::new())?;
    let mut writer = ParquetWriter::new(BufWriter::with_capacity(1 << 20, File::create(&path)?))
        .with_compression(ParquetCompression::Zstd(Some(PolarsZstdLevel::try_new(1)?)))
        .with_statistics(StatisticsOptions {
            min_value: true,
            max_value: true,
            distinct_count: false,
            null_count: true,
            ..StatisticsOptions::empty()
        })
        .set_parallel(false)
        .batched(first.schema())?;
    let mut group = Group::new();
    for (at, batch) in batches.iter().enumerate() {
        group.append(batch);
        if group.rows >= ROW_GROUP || at + 1 == batches.len() {
            let full = std::mem::replace(&mut group, Group::new());
            writer.write_batch(&frame(full)?)?;
        }
    }
    writer.finish()?;
    Ok(fs::metadata(path)?.len())
}

fn arrow_rs(batches: &[TimelineColumns], folder: &Path) -> Result<u64, Box<dyn Error>> {
    let path = folder.join("arrow.parquet");
    let field = |name: &str, physical| -> Result<TypePtr, Box<dyn Error>> {
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        Ok(Arc::new(field.build()?))
    };
    let mut fields = Vec::new();
    for name in ["run_id", "host", "capture"] {
        fields.push(field(name, PhysicalType::BYTE_ARRAY)?);
    }
    for (name, typed) in &Group::new().columns {
        let physical = match typed {
            TypedColumn::I32(..) => PhysicalType::INT32,
            TypedColumn::I64(..) => PhysicalType::INT64,
        };
        fields.push(field(name, physical)?);
    }
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(2 * ROW_GROUP))
        .build();
    let file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = Group::new();
    let mut levels: Vec<i16> = Vec::new();
    for (at, batch) in batches.iter().enumerate() {
        group.append(batch);
        if group.rows < ROW_GROUP && at + 1 < batches.len() {
            continue;
        }
        let full = std::mem::replace(&mut group, Group::new());
        let mut row_group = writer.next_row_group()?;
        for name in ["0123456789abcdef", "host", "capture"] {
            let mut column = row_group.next_column()?.ok_or("no column")?;
            let values = vec![parquet::data_type::ByteArray::from(name); full.rows];
            levels.clear();
            levels.resize(full.rows, 1);
            column
                .typed::<parquet::data_type::ByteArrayType>()
                .write_batch(&values, Some(&levels), None)?;
            column.close()?;
        }
        for (_, typed) in full.columns {
            let mut column = row_group.next_column()?.ok_or("no column")?;
            let (TypedColumn::I32(_, valid) | TypedColumn::I64(_, valid)) = &typed;
            levels.clear();
            levels.extend(valid.iter().map(|valid| i16::from(*valid)));
            match &typed {
                TypedColumn::I32(values, valid) => {
                    let present: Vec<i32> = present(values, valid);
                    column
                        .typed::<Int32Type>()
                        .write_batch(&present, Some(&levels), None)?;
                }
                TypedColumn::I64(values, valid) => {
                    let present: Vec<i64> = present(values, valid);
                    column
                        .typed::<Int64Type>()
                        .write_batch(&present, Some(&levels), None)?;
                }
            }
            column.close()?;
        }
        row_group.close()?;
    }
    writer.close()?;
    Ok(fs::metadata(path)?.len())
}

fn present<T: Copy>(values: &[T], valid: &[bool]) -> Vec<T> {
    let pairs = values.iter().zip(valid);
    pairs
        .filter(|(_, valid)| **valid)
        .map(|(value, _)| *value)
        .collect()
}

type Writer = fn(&[TimelineColumns], &Path) -> Result<u64, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let dataset = std::env::args().nth(1).ok_or("which dataset?")?;
    let mut batches = Vec::new();
    for rows in Rows::<TimelineColumns>::open(Path::new(&dataset))? {
        let mut columns = TimelineColumns::default();
        columns.extend(&rows?);
        batches.push(columns);
    }
    let rows: usize = batches.iter().map(Columns::len).sum();
    println!("{rows} rows, {} columns", TimelineColumns::TABLE.columns.len());
    let writers: [(&str, Writer); 3] = [
        ("this crate", ours),
        ("polars", polars),
        ("parquet (arrow-rs)", arrow_rs),
    ];
    let folder = tempfile::tempdir()?;
    let mut least = [(Duration::MAX, 0); 3];
    for _ in 0..ROUNDS {
        for ((_, writer), (least, size)) in writers.iter().zip(&mut least) {
            let begin = Instant::now();
            *size = writer(&batches, folder.path())?;
            *least = begin.elapsed().min(*least);
        }
    }
    for ((name, _), (least, size)) in writers.iter().zip(least) {
        let rows = u64::try_from(rows.max(1))?;
        let (tenths, hundredths) = (least.as_nanos() * 10 / u128::from(rows), size * 100 / rows);
        println!(
            "{name:20} {:5}.{} ns a row  {:3}.{:02} bytes a row",
            tenths / 10,
            tenths % 10,
            hundredths / 100,
            hundredths % 100
        );
    }
    Ok(())
}
