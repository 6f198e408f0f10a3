//! Damages the tables of a dataset at random and reads them: `damage DATASET FIRST COUNT`. Each seed damages a few bytes of a table that is
//! stored uncompressed, so that counts and lengths inside of pages are hit. The seed is printed before the table is read: the last one
//! printed is the one at which a process ended.
//!
//! Run it with limited memory: `ulimit -v 4000000`.

use std::fs;
use std::io::Write;
use std::path::Path;

use polars::prelude::{ParquetCompression, ParquetReader, ParquetWriter, SerReader};
use rand::{RngExt, SeedableRng};
use roce_model::{EventColumns, FlowColumns, TimelineColumns};
use roce_parquet::{Rows, read_table};

const TABLES: [&str; 3] = ["flows", "timeline", "events"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dataset, first, count] = arguments.as_slice() else {
        return Err("damage DATASET FIRST COUNT".into());
    };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let mut stored = Vec::new();
    for table in TABLES {
        let path = Path::new(dataset).join(table).join("part-0.parquet");
        let mut frame = ParquetReader::new(fs::File::open(&path)?).finish()?;
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes)
            .with_compression(ParquetCompression::Uncompressed)
            .finish(&mut frame)?;
        stored.push(bytes);
    }
    let folder = tempfile::tempdir()?;
    let progress = fs::File::create("damage.seed")?;
    std::panic::set_hook(Box::new(|_| ()));
    let (mut read, mut refused) = (0, 0);
    for seed in first..first + count {
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
        let which = random.random_range(0..TABLES.len());
        let mut bytes = stored[which].clone();
        let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into()?) as usize + 8;
        for _ in 0..random.random_range(1..4) {
            let end = bytes.len();
            let at = match random.random_range(0..3) {
                0 => random.random_range(end - footer..end),
                _ => random.random_range(4..end - footer),
            };
            let length = random.random_range(1..=9).min(end - at);
            for byte in &mut bytes[at..at + length] {
                *byte = match random.random_range(0..4) {
                    0 => 0xff,
                    1 => 0x80,
                    2 => *byte ^ 1 << random.random_range(0..8),
                    _ => random.random(),
                };
            }
        }
        let table = TABLES[which];
        fs::create_dir_all(folder.path().join(table))?;
        fs::write(folder.path().join(table).join("part-0.parquet"), &bytes)?;
        progress.set_len(0)?;
        std::os::unix::fs::FileExt::write_all_at(&progress, format!("{seed}\n").as_bytes(), 0)?;
        let rows = match table {
            "flows" => Rows::<FlowColumns>::open(folder.path())?.all(|rows| rows.is_ok()),
            "timeline" => Rows::<TimelineColumns>::open(folder.path())?.all(|rows| rows.is_ok()),
            _ => Rows::<EventColumns>::open(folder.path())?.all(|rows| rows.is_ok()),
        };
        let table = read_table(folder.path(), table).is_ok();
        if rows && table {
            read += 1;
        } else {
            refused += 1;
        }
    }
    writeln!(std::io::stdout(), "{read} read, {refused} refused")?;
    Ok(())
}
