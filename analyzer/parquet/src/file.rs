//! A Parquet file in the making: its pages with their checksums, and its footer. Which rows are in it, and where it is, is left to others.
//!
//! Each page has the CRC-32 of its bytes in its header (parquet.thrift, `PageHeader.crc`), which other readers verify. Headers and footer are
//! in no page. So the footer has the CRC-32 of the whole file among its pairs of keys and values, as eight hexadecimal digits: it is that of the
//! file with zeros in their place.
//!
//! polars' own writer takes the same pages, but writes `crc: None` and lets nobody set it (polars-parquet 0.55, `write/page.rs`).

use std::io::{self, Write};
use std::sync::Arc;

use crc32fast::Hasher;
use polars::prelude::{CompatLevel, PolarsError, PolarsResult, Schema, SchemaExt as _};
use polars_parquet::parquet::error::ParquetError;
use polars_parquet::parquet::metadata::{ColumnDescriptor, SchemaDescriptor};
use polars_parquet::write::{CompressionOptions, KeyValue, WriteOptions};
use polars_parquet_format::thrift::protocol::TCompactOutputProtocol;
use polars_parquet_format::{
    ColumnChunk, ColumnMetaData, CompressionCodec, DataPageHeader, DictionaryPageHeader, Encoding,
    FileMetaData, PageHeader, PageType, RowGroup, Statistics,
};

use crate::marks::{CHECKSUM_KEY, CREATED_BY, NO_DIGITS, checksum_mark, last_place};

/// First and last bytes of a file.
const MAGIC: [u8; 4] = *b"PAR1";

/// A page as a file has it.
pub(crate) struct FilePage {
    header: PageHeader,
    /// The header's bytes, then those of the page.
    bytes: Vec<u8>,
    /// Number of the header's bytes.
    header_bytes: usize,
    codec: CompressionCodec,
}

impl FilePage {
    /// A page of data: its levels and values.
    pub(crate) fn data(
        body: &[u8],
        header: DataPageHeader,
        compression: CompressionOptions,
    ) -> PolarsResult<Self> {
        Self::new(body, compression, |uncompressed, compressed, crc| {
            PageHeader::new(
                PageType::DATA_PAGE,
                uncompressed,
                compressed,
                crc,
                header,
                None,
                None,
                None,
            )
        })
    }

    /// The page of a dictionary: `distinct` plain values.
    pub(crate) fn dictionary(
        body: &[u8],
        distinct: usize,
        compression: CompressionOptions,
    ) -> PolarsResult<Self> {
        let count = i32::try_from(distinct).map_err(ParquetError::from)?;
        let header = DictionaryPageHeader::new(count, Encoding::PLAIN, None);
        Self::new(body, compression, |uncompressed, compressed, crc| {
            PageHeader::new(
                PageType::DICTIONARY_PAGE,
                uncompressed,
                compressed,
                crc,
                None,
                None,
                header,
                None,
            )
        })
    }

    fn new(
        body: &[u8],
        compression: CompressionOptions,
        header: impl FnOnce(i32, i32, i32) -> PageHeader,
    ) -> PolarsResult<Self> {
        let size = |bytes: &[u8]| i32::try_from(bytes.len()).map_err(ParquetError::from);
        let mut compressed = Vec::new();
        let stored = if matches!(compression, CompressionOptions::Uncompressed) {
            body
        } else {
            polars_parquet::parquet::compression::compress(compression, body, &mut compressed)?;
            &compressed
        };
        let header = header(size(body)?, size(stored)?, crc32fast::hash(stored).cast_signed());
        let mut bytes = Vec::with_capacity(stored.len() + 128);
        let written = header.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut bytes));
        written.map_err(ParquetError::from)?;
        let header_bytes = bytes.len();
        bytes.extend_from_slice(stored);
        Ok(Self {
            header,
            bytes,
            header_bytes,
            codec: compression.into(),
        })
    }

    /// Number of values in it, absent ones counted; 0 of a dictionary.
    fn values(&self) -> i64 {
        self.header
            .data_page_header
            .as_ref()
            .map_or(0, |header| i64::from(header.num_values))
    }

    /// Smallest and largest value of a page of data.
    fn statistics(&self) -> Option<&Statistics> {
        self.header.data_page_header.as_ref()?.statistics.as_ref()
    }

    /// Encodings of its values and levels.
    fn encodings(&self) -> Vec<Encoding> {
        let data = self.header.data_page_header.as_ref();
        data.map_or_else(
            || vec![Encoding::PLAIN],
            |header| vec![header.encoding, Encoding::RLE],
        )
    }
}

/// A file that rows are written to, one row group after the other.
pub(crate) struct FileWriter<W> {
    file: W,
    /// Number of bytes that are written.
    size: u64,
    /// Checksum of these.
    checksum: Hasher,
    schema: Arc<SchemaDescriptor>,
    /// The footer.
    metadata: FileMetaData,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file of these columns with its magic number.
    pub(crate) fn begin(file: W, schema: &Schema, options: WriteOptions) -> PolarsResult<Self> {
        let columns = schema.to_arrow(CompatLevel::newest());
        let mut empty = polars_parquet::write::FileWriter::try_new(io::sink(), columns, options)?;
        let schema = Arc::new(empty.parquet_schema().clone());
        empty.end(Some(Vec::new()))?;
        let (_, metadata) = empty.into_inner_and_metadata();
        let mut writer = Self {
            file,
            size: 0,
            checksum: Hasher::new(),
            schema,
            metadata,
        };
        writer.write(&MAGIC)?;
        Ok(writer)
    }

    /// The columns as the file describes them.
    pub(crate) const fn schema(&self) -> &Arc<SchemaDescriptor> {
        &self.schema
    }

    fn write(&mut self, bytes: &[u8]) -> PolarsResult<()> {
        self.file.write_all(bytes)?;
        self.checksum.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Writes a row group of `rows` rows; `chunks` are the pages of each column.
    pub(crate) fn write_row_group(&mut self, rows: u64, chunks: &[Vec<FilePage>]) -> PolarsResult<()> {
        let schema = Arc::clone(&self.schema);
        let begin = signed(self.size);
        let mut columns = Vec::with_capacity(chunks.len());
        let (mut uncompressed, mut compressed) = (0, 0);
        for (pages, column) in chunks.iter().zip(schema.columns()) {
            let metadata = chunk(column, pages, self.size);
            for page in pages {
                self.write(&page.bytes)?;
            }
            uncompressed += metadata.total_uncompressed_size;
            compressed += metadata.total_compressed_size;
            columns.push(ColumnChunk::new(
                None, 0, metadata, None, None, None, None, None, None,
            ));
        }
        let rows = i64::try_from(rows).map_err(ParquetError::from)?;
        let ordinal = i16::try_from(self.metadata.row_groups.len()).ok();
        let group = RowGroup::new(columns, uncompressed, rows, None, begin, compressed, ordinal);
        self.metadata.row_groups.push(group);
        self.metadata.num_rows += rows;
        Ok(())
    }

    /// Writes the footer with these pairs of keys and values. The number of bytes of the file.
    ///
    /// polars' own footer has an Arrow schema beside Parquet's, in which texts are of the type `string_view`. pyarrow 26 has no function that
    /// compares such columns, so that every filter on them fails. Without that schema all readers take Parquet's.
    pub(crate) fn end(&mut self, version: &str, pairs: Vec<(&str, String)>) -> PolarsResult<u64> {
        let digits = String::from_utf8_lossy(&NO_DIGITS).into_owned();
        let pairs = std::iter::once((CHECKSUM_KEY, digits)).chain(pairs);
        let pairs = pairs.map(|(key, value)| KeyValue::new(key.to_owned(), value));
        self.metadata.key_value_metadata = Some(pairs.collect());
        self.metadata.created_by = Some(format!("{CREATED_BY}{version}"));
        let mut footer = Vec::new();
        let written = self
            .metadata
            .write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut footer));
        written.map_err(ParquetError::from)?;
        let length = u32::try_from(footer.len()).map_err(ParquetError::from)?;
        footer.extend_from_slice(&length.to_le_bytes());
        footer.extend_from_slice(&MAGIC);
        let mark = checksum_mark();
        let place = last_place(&footer, &mark).map(|place| place + mark.len());
        let mut checksum = self.checksum.clone();
        checksum.update(&footer);
        let digits = format!("{:08x}", checksum.finalize());
        place
            .and_then(|place| footer.get_mut(place..place + digits.len()))
            .ok_or_else(|| PolarsError::ComputeError("the footer has no place for its checksum".into()))?
            .copy_from_slice(digits.as_bytes());
        self.write(&footer)?;
        self.file.flush()?;
        Ok(self.size)
    }
}

/// The description of a column's pages in a row group. The first one is at byte `begin` of the file.
fn chunk(column: &ColumnDescriptor, pages: &[FilePage], begin: u64) -> ColumnMetaData {
    let (physical, _) = column.descriptor.primitive_type.physical_type.into();
    let mut encodings: Vec<Encoding> = pages.iter().flat_map(FilePage::encodings).collect();
    encodings.sort_unstable();
    encodings.dedup();
    let uncompressed =
        |page: &FilePage| signed(page.header_bytes as u64) + i64::from(page.header.uncompressed_page_size);
    let compressed = |page: &FilePage| signed(page.bytes.len() as u64);
    let begin = signed(begin);
    let dictionary = pages
        .first()
        .filter(|page| page.header.type_ == PageType::DICTIONARY_PAGE);
    // The extremes of several pages are left out: texts that take more than a page have no use for them.
    let mut data = pages.iter().filter(|page| page.header.data_page_header.is_some());
    let statistics = match (data.next(), data.next()) {
        (Some(page), None) => page.statistics().cloned(),
        _ => None,
    };
    ColumnMetaData::new(
        physical,
        encodings,
        column.path_in_schema.iter().map(ToString::to_string).collect(),
        pages
            .first()
            .map_or(CompressionCodec::UNCOMPRESSED, |page| page.codec),
        pages.iter().map(FilePage::values).sum::<i64>(),
        pages.iter().map(uncompressed).sum::<i64>(),
        pages.iter().map(compressed).sum::<i64>(),
        None,
        begin + dictionary.map_or(0, compressed),
        None,
        dictionary.map(|_| begin),
        statistics,
        None,
        None,
        None,
        None,
    )
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
