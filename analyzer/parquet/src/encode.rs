//! The pages of a column chunk. Numbers get the encoding that their range allows: a column of a timeline has few distinct values, which a
//! table finds without hashing. Other types go through polars' encoders.
//!
//! polars' own writer (an estimate, then a hash map over every value) takes 4.4 times as long on a timeline, and that of `parquet` (arrow-rs)
//! 5.2 times, for files of the same size: `tests/crates/writers` measures them side by side.

use polars::polars_utils::compression::ZstdLevel;
use polars::prelude::{Column, CompatLevel, DataType, PolarsResult, StatisticsOptions, polars_err};
use polars_parquet::parquet::metadata::ColumnDescriptor;
use polars_parquet::parquet::page::{DataPageHeader, DataPageHeaderV1, FormatEncoding, Page};
use polars_parquet::parquet::statistics::{BinaryStatistics, ParquetStatistics, PrimitiveStatistics};
use polars_parquet::parquet::types::NativeType;
use polars_parquet::write::{CompressionOptions, Encoding, Version, WriteOptions, array_to_columns};
use roce_model::Values;

use crate::file::FilePage;

/// The pages of a column chunk: perhaps one of a dictionary, and one of data.
pub(crate) type Pages = Vec<FilePage>;

/// A range so narrow that each of its numbers gets a place in the dictionary, whether it occurs or not.
const MAX_DENSE: u64 = 1 << 6;
/// Values from the smallest to the largest of a chunk for which a table finds the place in the dictionary.
const MAX_RANGE: u64 = 1 << 14;
/// Values of a dictionary: an index has 16 bits.
const MAX_DISTINCT: usize = 1 << 16;
/// A chunk whose encoded values are shorter is not compressed: the header of a zstd frame and its tables cost more than they save.
const MIN_COMPRESSED: usize = 64;

/// Bytes from which values of other types than numbers take several pages.
const PAGE_BYTES: usize = 16 << 20;

/// A number as the tables store it.
pub(crate) trait Number: NativeType + Default + Ord + Into<i64> {
    /// The number with this value.
    fn from_i64(value: i64) -> Option<Self>;
}

impl Number for i32 {
    fn from_i64(value: i64) -> Option<Self> {
        Self::try_from(value).ok()
    }
}

impl Number for i64 {
    fn from_i64(value: i64) -> Option<Self> {
        Some(value)
    }
}

/// How values become pages.
pub(crate) const fn options(compression: ZstdLevel, statistics: StatisticsOptions) -> WriteOptions {
    WriteOptions {
        statistics,
        version: Version::V1,
        compression: CompressionOptions::Zstd(Some(compression)),
        data_page_size: Some(PAGE_BYTES),
    }
}

/// Encodes chunks; keeps its tables from one to the next.
pub(crate) struct ChunkEncoder {
    options: WriteOptions,
    /// Places in the dictionary, by the distance from the smallest value.
    places: Vec<u16>,
    hashed: HashedDictionary,
    indexes: Vec<u16>,
}

impl ChunkEncoder {
    pub(crate) fn new(compression: ZstdLevel, statistics: StatisticsOptions) -> Self {
        Self {
            options: options(compression, statistics),
            places: Vec::new(),
            hashed: HashedDictionary::default(),
            indexes: Vec::new(),
        }
    }

    /// The pages of a chunk of numbers.
    pub(crate) fn numbers<T: Number>(
        &mut self,
        chunk: &Values<T>,
        column: &ColumnDescriptor,
    ) -> PolarsResult<Pages> {
        let rows = chunk.len();
        let (leading_nulls, values) = chunk.or_default();
        let mut body = Vec::new();
        levels(&mut body, leading_nulls, values.len(), chunk.present());
        let compacted: Vec<T>;
        let present = if chunk.present().is_empty() {
            values
        } else {
            let pairs = values.iter().zip(chunk.present());
            compacted = pairs
                .filter(|(_, valid)| **valid)
                .map(|(value, _)| *value)
                .collect();
            &compacted
        };
        let nulls = rows - present.len();
        let extremes = extremes(present);
        let statistics = PrimitiveStatistics {
            primitive_type: column.descriptor.primitive_type.clone(),
            null_count: Some(signed(nulls)),
            distinct_count: None,
            min_value: extremes.map(|(min, _)| min),
            max_value: extremes.map(|(_, max)| max),
        }
        .serialize();
        let distinct = extremes.and_then(|(min, max)| self.dictionary(present, min, max));
        let Some(distinct) = distinct else {
            plain(&mut body, present);
            let compression = self.compression(body.len());
            let header = data_header(rows, Encoding::Plain, statistics);
            return Ok(vec![FilePage::data(&body, header, compression)?]);
        };
        if distinct.len() == 1 {
            one_index(&mut body, present.len());
        } else {
            indexes(&mut body, &self.indexes, distinct.len());
        }
        let mut dictionary = Vec::new();
        plain(&mut dictionary, &distinct);
        self.with_dictionary(&dictionary, distinct.len(), &body, rows, statistics)
    }

    /// The pages of a chunk in which every row has the same text.
    pub(crate) fn constant_text(
        &mut self,
        text: &str,
        rows: usize,
        column: &ColumnDescriptor,
    ) -> PolarsResult<Pages> {
        let mut body = Vec::new();
        levels(&mut body, 0, rows, &[]);
        one_index(&mut body, rows);
        let mut plain = Vec::with_capacity(4 + text.len());
        plain.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        plain.extend_from_slice(text.as_bytes());
        let statistics = BinaryStatistics {
            primitive_type: column.descriptor.primitive_type.clone(),
            null_count: Some(0),
            distinct_count: None,
            min_value: Some(text.as_bytes().to_vec()),
            max_value: Some(text.as_bytes().to_vec()),
        }
        .serialize();
        self.with_dictionary(&plain, 1, &body, rows, statistics)
    }

    /// The pages of a column of polars'.
    pub(crate) fn column(&mut self, values: &Column, column: &ColumnDescriptor) -> PolarsResult<Pages> {
        let physical = values.to_physical_repr();
        match physical.dtype() {
            DataType::Int32 => self.numbers(&numbers(physical.i32()?.iter()), column),
            DataType::Int64 => self.numbers(&numbers(physical.i64()?.iter()), column),
            _ => self.other(values, column),
        }
    }

    /// The pages of a chunk of another type, by polars' encoders.
    pub(crate) fn other(&self, values: &Column, column: &ColumnDescriptor) -> PolarsResult<Pages> {
        let array = values
            .as_materialized_series()
            .rechunk()
            .to_arrow(0, CompatLevel::newest());
        let columns = array_to_columns(
            array,
            (*column.base_type).clone(),
            self.options,
            &[Encoding::RleDictionary],
        )?;
        let compression = self.options.compression;
        let page = |page| match page {
            Page::Dict(page) => FilePage::dictionary(&page.buffer, page.num_values, compression),
            Page::Data(page) => match page.header() {
                DataPageHeader::V1(header) => FilePage::data(page.buffer(), header.clone(), compression),
                DataPageHeader::V2(_) => Err(polars_err!(ComputeError: "a page of version 2")),
            },
        };
        columns
            .into_iter()
            .flatten()
            .map(|encoded| page(encoded?))
            .collect()
    }

    fn with_dictionary(
        &self,
        plain: &[u8],
        distinct: usize,
        body: &[u8],
        rows: usize,
        statistics: ParquetStatistics,
    ) -> PolarsResult<Pages> {
        // All pages of a chunk are compressed alike (parquet.thrift, `ColumnMetaData.codec`).
        let compression = self.compression(plain.len() + body.len());
        let header = data_header(rows, Encoding::RleDictionary, statistics);
        Ok(vec![
            FilePage::dictionary(plain, distinct, compression)?,
            FilePage::data(body, header, compression)?,
        ])
    }

    fn compression(&self, bytes: usize) -> CompressionOptions {
        if bytes < MIN_COMPRESSED {
            CompressionOptions::Uncompressed
        } else {
            self.options.compression
        }
    }

    /// The distinct values, with the index of each row in `indexes`; `None` where a dictionary does not pay.
    fn dictionary<T: Number>(&mut self, values: &[T], min: T, max: T) -> Option<Vec<T>> {
        self.indexes.clear();
        if min == max {
            return Some(vec![min]);
        }
        let (min, max): (i64, i64) = (min.into(), max.into());
        let range = max.wrapping_sub(min).cast_unsigned();
        let rows = u64::try_from(values.len()).unwrap_or(u64::MAX);
        if range < MAX_DENSE && range <= rows {
            return Some(self.dense(values, min, max));
        }
        if range < MAX_RANGE && range <= rows {
            return Some(self.by_range(values, min, range));
        }
        self.hashed.index(values, &mut self.indexes)
    }

    /// All numbers from the smallest to the largest.
    fn dense<T: Number>(&mut self, values: &[T], min: i64, max: i64) -> Vec<T> {
        let index = |value: &T| place((*value).into(), min);
        self.indexes.extend(values.iter().map(index));
        (min..=max).filter_map(T::from_i64).collect()
    }

    /// The distinct values in the order of their first rows, found by a table of the range.
    fn by_range<T: Number>(&mut self, values: &[T], min: i64, range: u64) -> Vec<T> {
        const NONE: u16 = u16::MAX;
        self.places.clear();
        self.places.resize(usize::try_from(range).unwrap_or(0) + 1, NONE);
        let mut distinct = Vec::new();
        self.indexes.extend(values.iter().map(|value| {
            let Some(index) = self.places.get_mut(usize::from(place((*value).into(), min))) else {
                return 0;
            };
            if *index == NONE {
                *index = u16::try_from(distinct.len()).unwrap_or(0);
                distinct.push(*value);
            }
            *index
        }));
        distinct
    }
}

/// Numbers of which some are absent.
fn numbers<T: Number>(from: impl Iterator<Item = Option<T>>) -> Values<T> {
    let mut values = Values::default();
    for value in from {
        match value {
            Some(value) => values.push(value),
            None => values.push_null(),
        }
    }
    values
}

/// Distance of a value from the smallest one, where the range has 16 bits.
fn place(value: i64, min: i64) -> u16 {
    u16::try_from(value.wrapping_sub(min)).unwrap_or(0)
}

/// A dictionary of numbers that are far apart.
#[derive(Default)]
struct HashedDictionary {
    /// Index of a value, 1 more, by its hash; 0: none. A power of two, of which at least half stay empty.
    slots: Vec<u32>,
}

impl HashedDictionary {
    /// The distinct values in the order of their first rows, and the index of each row; `None` when there are too many for a dictionary to pay.
    fn index<T: Number>(&mut self, values: &[T], indexes: &mut Vec<u16>) -> Option<Vec<T>> {
        // Half as many distinct values as rows: their dictionary and indexes take three quarters of the plain values.
        let limit = MAX_DISTINCT.min(values.len() / 2);
        self.slots.clear();
        self.slots.resize((2 * limit).next_power_of_two(), 0);
        let mut distinct: Vec<T> = Vec::new();
        indexes.reserve(values.len());
        let mut last = (None, 0);
        for value in values {
            if last.0 != Some(*value) {
                let index = self.find(*value, &mut distinct, limit)?;
                last = (Some(*value), u16::try_from(index).ok()?);
            }
            indexes.push(last.1);
        }
        Some(distinct)
    }

    /// The index of a value, which becomes the last one where it is new; `None` when there are `limit`.
    fn find<T: Number>(&mut self, value: T, distinct: &mut Vec<T>, limit: usize) -> Option<u32> {
        let bits = self.slots.len().ilog2();
        let key: i64 = value.into();
        // Fibonacci hashing: the golden ratio in 64 bits.
        let hash = key.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = usize::try_from(hash.checked_shr(64 - bits)?).ok()?;
        loop {
            let held = self.slots.get_mut(slot)?;
            let Some(index) = held.checked_sub(1) else {
                if distinct.len() >= limit {
                    return None;
                }
                let index = u32::try_from(distinct.len()).ok()?;
                *held = index + 1;
                distinct.push(value);
                return Some(index);
            };
            if distinct.get(usize::try_from(index).ok()?) == Some(&value) {
                return Some(index);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}

/// The values one behind the other, little-endian.
fn plain<T: Number>(body: &mut Vec<u8>, values: &[T]) {
    let start = body.len();
    body.resize(start + size_of_val(values), 0);
    for (bytes, value) in body[start..].chunks_exact_mut(size_of::<T>()).zip(values) {
        bytes.copy_from_slice(value.to_le_bytes().as_ref());
    }
}

/// Indexes of a dictionary with `distinct` values: their width, then their runs.
fn indexes(body: &mut Vec<u8>, indexes: &[u16], distinct: usize) {
    let bits = (distinct.max(2) - 1).ilog2() + 1;
    body.push(bits.to_le_bytes()[0]);
    runs(body, indexes, usize::try_from(bits).unwrap_or(1));
}

/// Numbers of `width` bits as runs of equal ones and runs of packed ones (Parquet's hybrid of run lengths and bit packing). polars' encoder of
/// it looks at each value; here eight are looked at and packed at a time.
fn runs(body: &mut Vec<u8>, numbers: &[u16], width: usize) {
    // Packed, with a byte for every 64 values to spare.
    body.reserve(numbers.len() * width / 8 + numbers.len() / 64 + 64);
    // Number of groups of 8 from which a run is shorter than its packed form.
    let min_groups = 1 + 4 / width;
    let equal = |group: &[u16], value: u16| group.iter().all(|index| *index == value);
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let run = rest.chunks(8).take_while(|group| equal(group, *first)).count();
        if run >= min_groups {
            let (run, behind) = rest.split_at((8 * run).min(rest.len()));
            repeated(body, *first, run.len(), width);
            rest = behind;
            continue;
        }
        // Packed groups, until a run begins.
        let mut groups = rest.chunks(8);
        let mut packed = 0;
        let mut alike = 0;
        let mut last = None;
        for group in groups.by_ref() {
            packed += 1;
            let value = group.first().copied().filter(|value| equal(group, *value));
            alike = match value {
                Some(_) if value == last => alike + 1,
                Some(_) => 1,
                None => 0,
            };
            last = value;
            if alike == min_groups {
                packed -= min_groups;
                break;
            }
        }
        let (literal, behind) = rest.split_at((8 * packed).min(rest.len()));
        varint(body, packed << 1 | 1);
        for group in literal.chunks(8) {
            let mut bytes = 0u128;
            for (at, index) in group.iter().enumerate() {
                bytes |= u128::from(*index) << (at * width);
            }
            body.extend_from_slice(&bytes.to_le_bytes()[..width]);
        }
        rest = behind;
    }
}

/// A run of one number; nothing where it is empty.
fn repeated(body: &mut Vec<u8>, number: u16, times: usize, width: usize) {
    if times > 0 {
        varint(body, times << 1);
        body.extend_from_slice(&number.to_le_bytes()[..width.div_ceil(8)]);
    }
}

/// A number of 7 bits a byte, the lowest first (ULEB128).
fn varint(body: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = number.to_le_bytes()[0] & 0x7f;
        number >>= 7;
        if number == 0 {
            body.push(low);
            return;
        }
        body.push(low | 0x80);
    }
}

/// The smallest and the largest value.
fn extremes<T: Number>(values: &[T]) -> Option<(T, T)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(min, max), value| {
        (min.min(*value), max.max(*value))
    }))
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Definition levels of a page (format version 1): their length, then 1 bit for each row, by run lengths.
fn levels(body: &mut Vec<u8>, leading_nulls: usize, rows: usize, valid: &[bool]) {
    let start = body.len();
    body.extend_from_slice(&[0; 4]);
    repeated(body, 0, leading_nulls, 1);
    if valid.is_empty() {
        repeated(body, 1, rows, 1);
    } else {
        let bits: Vec<u16> = valid.iter().map(|valid| u16::from(*valid)).collect();
        runs(body, &bits, 1);
    }
    let length = u32::try_from(body.len() - start - 4).unwrap_or(u32::MAX);
    body[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Indexes of which all are the first one. Their width is 1 bit: some readers refuse a width of 0.
fn one_index(body: &mut Vec<u8>, rows: usize) {
    body.push(1);
    repeated(body, 0, rows, 1);
}

fn data_header(rows: usize, encoding: Encoding, statistics: ParquetStatistics) -> DataPageHeaderV1 {
    DataPageHeaderV1 {
        num_values: i32::try_from(rows).unwrap_or(i32::MAX),
        encoding: FormatEncoding::from(encoding),
        definition_level_encoding: Encoding::Rle.into(),
        repetition_level_encoding: Encoding::Rle.into(),
        statistics: Some(statistics),
    }
}

#[cfg(test)]
mod tests {
    use polars::prelude::{DataFrame, Int64Chunked, IntoColumn, NewChunkedArray, ParquetReader, SerReader};
    use polars_parquet::parquet::encoding::hybrid_rle::HybridRleDecoder;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::file::FileWriter;

    #[test]
    fn indexes_come_back_from_the_decoder_of_polars() {
        let mut random = Pcg64::seed_from_u64(17);
        for round in 0..2_000 {
            let distinct = [2, 3, 4, 5, 16, 17, 255, 256, 257, 65_536][round % 10];
            let length = random.random_range(0..200);
            let mut values: Vec<u16> = Vec::new();
            while values.len() < length {
                let run = [1, 1, 1, 7, 8, 9, 15, 16, 40][random.random_range(0..9)];
                let value = u16::try_from(random.random_range(0..distinct)).unwrap();
                values.extend(std::iter::repeat_n(value, run));
            }
            values.truncate(length);
            let mut body = Vec::new();
            indexes(&mut body, &values, distinct);
            let (bits, runs) = body.split_first().unwrap();
            let decoder = HybridRleDecoder::new(runs, u32::from(*bits), values.len());
            let expected: Vec<u32> = values.iter().map(|value| u32::from(*value)).collect();
            assert_eq!(decoder.collect().unwrap(), expected, "{distinct} {values:?}");
        }
    }

    /// Numbers of one of the shapes that columns have.
    fn shaped(random: &mut Pcg64, rows: usize) -> Vec<i64> {
        let shape = random.random_range(0..8);
        let base = random.random_range(0..i64::MAX / 2);
        let mut counter = base;
        let mut next = |row: usize| match shape {
            0 => 7,
            1 => random.random_range(0..40),
            2 => base + random.random_range(0..10_000),
            3 => base + i64::from(random.random_range(0..300)) * 1_000_000_007,
            4 => i64::try_from(random.next_u64() >> 1).unwrap(),
            5 => [i64::MIN, i64::MAX, 0][random.random_range(0..3)],
            6 => i64::from(row.is_multiple_of(97)),
            _ => {
                counter += i64::from(row.is_multiple_of(50));
                counter
            }
        };
        (0..rows).map(&mut next).collect()
    }

    #[test]
    fn chunks_of_every_shape_come_back() {
        let mut random = Pcg64::seed_from_u64(18);
        let statistics = StatisticsOptions::full();
        let level = ZstdLevel::try_new(1).unwrap();
        let mut encoder = ChunkEncoder::new(level, statistics);
        for round in 0..300 {
            let rows = random.random_range(1..3_000);
            let leading_nulls = [0, 0, 5, rows][round % 4];
            let values = shaped(&mut random, rows - leading_nulls);
            let valid: Vec<bool> = match round % 3 {
                0 => Vec::new(),
                1 => values.iter().map(|_| random.random_range(0..4) > 0).collect(),
                _ => vec![false; values.len()],
            };
            let present = |row: usize| valid.is_empty() || valid[row];
            let mut expected: Vec<Option<i64>> = vec![None; leading_nulls];
            expected.extend(
                values
                    .iter()
                    .enumerate()
                    .map(|(row, value)| present(row).then_some(*value)),
            );
            let frame = DataFrame::new(
                rows,
                vec![Int64Chunked::from_slice_options("n".into(), &expected).into_column()],
            )
            .unwrap();
            let mut file = Vec::new();
            let mut writer = FileWriter::begin(&mut file, frame.schema(), encoder.options).unwrap();
            let column = writer.schema().columns()[0].clone();
            // A first value that is dropped again: absent ones behind it keep their places.
            let mut chunk = Values::default();
            chunk.extend_null(leading_nulls);
            chunk.push(0);
            for value in &expected[leading_nulls..] {
                match value {
                    Some(value) => chunk.push(*value),
                    None => chunk.push_null(),
                }
            }
            let keep: Vec<bool> = (0..=rows).map(|row| row != leading_nulls).collect();
            chunk.retain(&keep);
            let pages = encoder.numbers(&chunk, &column).unwrap();
            writer.write_row_group(rows as u64, &[pages]).unwrap();
            writer.end("0", Vec::new()).unwrap();
            let read = ParquetReader::new(std::io::Cursor::new(file)).finish().unwrap();
            assert!(read.equals_missing(&frame), "round {round}: {read}");
        }
    }
}
