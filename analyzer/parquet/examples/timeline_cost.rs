//! How long a timeline row takes to be written: `timeline_cost DIR [ROWS [ROW_GROUP [LEVEL [parallel]]]]`.
//!
//! Rows are like those of a run of 1,000 flows with bins of 1 ms: a few hundred packets a bin, now and then CE.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use roce_model::{
    Columns as _, FlowId, RunKey, RunSummary, Sink as _, TapId, Time, TimelineColumns, TimelineRow,
};
use roce_parquet::{Dataset, Options};

const FLOWS: u64 = 1_000;
const BATCH: usize = 4_096;

fn row(number: u64, random: u64) -> TimelineRow {
    let flow = number % FLOWS;
    let packets = 20 + u32::try_from(random % 300).unwrap_or(0);
    let marked = if random.is_multiple_of(7) { packets / 10 } else { 0 };
    let retransmitted = u32::from(random.is_multiple_of(97));
    TimelineRow {
        time: Time(1_763_700_000_000_000_000 + number / FLOWS * 1_000_000),
        flow_id: FlowId((flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & FlowId::MAX.0),
        tap: TapId(0),
        packets,
        wire_bytes: u64::from(packets) * 1_082,
        payload_bytes: u64::from(packets) * 1_024,
        data_packets: packets,
        ect0: packets - marked,
        ce: marked,
        retransmitted_packets: retransmitted,
        retransmitted_bytes: u64::from(retransmitted) * 1_024,
        missing: u64::from(retransmitted),
        acks: u32::try_from(random % 4).unwrap_or(0),
        messages: u32::try_from(random % 3).unwrap_or(0),
        senders_to_destination: 8,
        ..TimelineRow::default()
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = arguments.first().ok_or("give a folder")?;
    let number = |index: usize, default: usize| -> Result<usize, std::num::ParseIntError> {
        arguments.get(index).map_or(Ok(default), |text| text.parse())
    };
    let rows = number(1, 2_000_000)?;
    let defaults = Options::default();
    let options = Options {
        overwrite: true,
        row_group: number(2, defaults.row_group)?,
        compression_level: i32::try_from(number(3, usize::try_from(defaults.compression_level)?)?)?,
        parallel: arguments.get(4).is_some_and(|text| text == "parallel"),
        ..defaults
    };

    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut batches = Vec::new();
    for begin in (0..rows).step_by(BATCH) {
        let mut batch = TimelineColumns::default();
        for number in begin..rows.min(begin + BATCH) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            batch.push(&row(number as u64, random));
        }
        batches.push(batch);
    }

    let start = Instant::now();
    let mut dataset = Dataset::create(Path::new(dir), &RunKey::default(), &options)?;
    for batch in &batches {
        dataset.timeline(batch)?;
    }
    let fed = start.elapsed();
    dataset.finish(&RunSummary::default())?;
    let all = start.elapsed();
    let bytes = std::fs::metadata(Path::new(dir).join("timeline/part-0.parquet"))?.len();
    let nanos = |time: std::time::Duration| time.as_nanos() / (rows as u128);
    writeln!(
        std::io::stdout(),
        "{rows} rows, row group {}, zstd {}: {} ns a row ({} before finish), {bytes} bytes, {} for 10 rows",
        options.row_group,
        options.compression_level,
        nanos(all),
        nanos(fed),
        bytes * 10 / rows as u64,
    )?;
    Ok(())
}
