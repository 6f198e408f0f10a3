//! The table `samples`: recorded, replayed, stored and read back, whoever reads it.

use std::path::Path;

use roce_analyze::analyse_arguments;
use roce_model::{
    Columns, Counter, Sample, SampleColumns, SampleRow, SampleSeries, SampleSource, Sink, SinkError, Span,
    Time,
};
use tempfile::tempdir;

use crate::captures::Capture;
use crate::command::run;
use crate::replay::{record_notes, recorded};

/// Rows as a sink gets them.
#[derive(Default)]
struct Got(SampleColumns);

impl Sink for Got {
    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.0.append(&mut rows.clone());
        Ok(())
    }
}

/// A sample of one port, in the second `seconds` of the epoch `first`.
fn sample(first: Time, seconds: u64, counter: Counter, priority: Option<u8>, value: f64) -> Sample {
    Sample {
        time: Time(first.0 + seconds * Span::SECOND.0),
        source: SampleSource::Host,
        node: "h1".into(),
        object: if priority.is_some() {
            "ens1f0np0"
        } else {
            "mlx5_0:1"
        }
        .into(),
        counter,
        priority,
        queue: None,
        details: Vec::new(),
        value,
        bits: 32,
    }
}

/// Readings of a host: CNPs that wrap 32 bits, PFC frames of priority 3 that are reset, a gauge that falls.
pub(crate) fn readings(first: Time) -> Vec<SampleRow> {
    let mut series = SampleSeries::default();
    let mut rows = Vec::new();
    for (seconds, cnps, frames, objects) in [
        (0, 4_294_967_290.0, 500.0, 50.0),
        (1, 10.0, 620.0, 49.0),
        (2, 110.0, 20.0, 49.0),
    ] {
        for sample in [
            sample(first, seconds, Counter::PortCnpSent, None, cnps),
            sample(first, seconds, Counter::PfcReceivedFrames, Some(3), frames),
            Sample {
                details: vec!["qp".into()],
                ..sample(first, seconds, Counter::PortObjects, None, objects)
            },
        ] {
            rows.push(series.row(&sample, None));
        }
    }
    rows
}

/// A recording in `dir` of some frames with the samples `rows` of the host between them.
pub(crate) fn recording(dir: &Path, rows: &[SampleRow]) -> Time {
    std::fs::create_dir_all(dir).unwrap();
    let frames = Capture::named("rping").frames();
    let notes = rows.iter().map(|row| (row.time, SampleRow::BLOCK, row.encode()));
    record_notes(
        &dir.join("recording.pcapng.zst"),
        &recorded(&["live", "-i", "v1"]),
        &frames,
        notes.collect(),
    );
    frames[0].time
}

fn first_frame() -> Time {
    Capture::named("rping").frames()[0].time
}

#[test]
fn changes_are_those_of_wraps_resets_and_gauges() {
    let rows = readings(Time(Span::SECOND.0));
    let changes = |counter: Counter| -> Vec<(Option<f64>, bool)> {
        let rows = rows.iter().filter(|row| row.counter == counter.name());
        rows.map(|row| (row.change, row.reset)).collect()
    };
    // 6 up to the wrap of 32 bits and 10 behind it; then 100.
    assert_eq!(
        changes(Counter::PortCnpSent),
        [(None, false), (Some(16.0), false), (Some(100.0), false)]
    );
    // 120 more, then cleared: 20 since.
    assert_eq!(
        changes(Counter::PfcReceivedFrames),
        [(None, false), (Some(120.0), false), (Some(20.0), true)]
    );
    assert_eq!(changes(Counter::PortObjects), [(None, false); 3]);
}

#[test]
fn a_replay_gives_the_samples_of_the_run() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let rows = readings(first_frame());
    recording(&dir, &rows);
    let mut expected = SampleColumns::default();
    expected.extend(&rows);
    for threads in ["1", "3"] {
        let mut got = Got::default();
        let arguments = [dir.to_str().unwrap(), "--format", "none", "--threads", threads];
        analyse_arguments(arguments.map(Into::into), &mut got).unwrap();
        assert_eq!(got.0, expected, "{threads} threads");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn the_dataset_has_them_and_gives_them_back() {
    let folder = tempdir().unwrap();
    let rows = readings(first_frame());
    recording(&folder.path().join("dir"), &rows);
    crate::command::run(folder.path(), ["dir", "-o", "out"]).good();
    let document = std::fs::read_to_string(folder.path().join("out/run.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["samples"].as_array().unwrap().len(), rows.len());
    let out = folder.path().join("out");
    let stored = crate::dataset::rows(&out, "samples");
    assert_eq!(stored.len(), rows.len());
    let reset = stored.iter().find(|row| row["reset"] == true).unwrap();
    assert_eq!(reset["counter"], "pfc_received_frames");
    assert_eq!(
        (&reset["priority"], &reset["unit"]),
        (&3.into(), &"frames".into())
    );
    assert_eq!(reset["change"].as_f64(), Some(20.0));

    // Priorities that nobody counts are absent, not 0: the sum over priorities is that of priority 3.
    let frames = stored
        .iter()
        .filter(|row| row["counter"] == "pfc_received_frames");
    let (priorities, changes): (Vec<_>, Vec<_>) = frames
        .map(|row| (row["priority"].as_u64(), row["change"].as_f64().unwrap_or(0.0)))
        .unzip();
    assert_eq!(priorities, [Some(3); 3]);
    assert_eq!(Some(changes.iter().sum::<f64>()), Some(140.0));

    let mut got = Got::default();
    roce_pipeline::stored::replay(&out, &mut got).unwrap();
    let mut expected = SampleColumns::default();
    expected.extend(&rows);
    assert_eq!(got.0, expected);

    // Datasets that were written before there was the table are read, too.
    std::fs::remove_dir_all(out.join("samples")).unwrap();
    let mut got = Got::default();
    roce_pipeline::stored::replay(&out, &mut got).unwrap();
    assert!(got.0.is_empty());
}

#[cfg(feature = "parquet")]
#[test]
fn readings_of_this_host_become_a_dataset() {
    let folder = tempdir().unwrap();
    let counters = [
        "host",
        "counters",
        "-o",
        "out",
        "--host-name",
        "h7",
        "--interval",
        "50ms",
    ];
    let ran = crate::command::run(folder.path(), [&counters[..], &["--duration", "200ms"]].concat());
    ran.good();
    let out = folder.path().join("out");
    // This machine may have no adapter, and its interfaces no statistics: the tables are there all the same.
    for row in crate::dataset::rows(&out, "samples") {
        assert_eq!((&row["node"], &row["source"]), (&"h7".into(), &"host".into()));
    }
    let run = crate::dataset::rows(&out, "run");
    assert_eq!((run.len(), &run[0]["input"]), (1, &"host counters".into()));
    let time = |name: &str| run[0][name].as_str().unwrap().parse::<u64>().unwrap();
    // 200 ms pass between the first reading and the last.
    assert!(time("last_time") >= time("first_time") + 200_000_000);
    crate::command::run(folder.path(), ["report", "out"]).good();
    let again = crate::command::run(folder.path(), counters);
    assert_eq!(again.code, Some(2), "{again:?}");
}

/// The samples of every row, by host, with their times.
fn got(folder: &Path, arguments: &[&str]) -> SampleColumns {
    let mut got = Got::default();
    let arguments = arguments.iter().map(|argument| {
        let path = folder.join(argument);
        if path.exists() {
            path.into()
        } else {
            argument.into()
        }
    });
    analyse_arguments(arguments.chain(["--format", "none"].map(Into::into)), &mut got).unwrap();
    got.0
}

#[test]
fn samples_of_other_hosts_are_joined() {
    let folder = tempdir().unwrap();
    let rows = readings(first_frame());
    recording(&folder.path().join("a"), &rows);
    recording(&folder.path().join("b"), &rows);
    std::fs::copy(
        crate::captures::root().join("captures/rping.pcap"),
        folder.path().join("c.pcap"),
    )
    .unwrap();
    let both = got(folder.path(), &["c.pcap", "--samples", "a", "--samples", "b"]);
    assert_eq!(both.len(), 2 * rows.len());
    let some = got(folder.path(), &["c.pcap", "--samples", "a", "--to", "+500ms"]);
    assert_eq!(some.len(), 3, "those of the first reading");

    let nothing = crate::command::run(folder.path(), ["c.pcap", "--samples", "."]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("holds no samples"), "{}", nothing.stderr);
    let twice = crate::command::run(folder.path(), ["a", "--samples", "a"]);
    assert!(
        twice.stderr.contains("in the results already"),
        "{}",
        twice.stderr
    );
}

#[test]
fn samples_move_with_the_clock_of_the_capture_beside_them() {
    let folder = tempdir().unwrap();
    let capture = Capture::named("write_bw_loss");
    // The packets of one capture, seen again with a clock that is 5 s ahead.
    let ahead = 5 * Span::SECOND.0;
    let mut frames = capture.frames();
    let first = frames[0].time;
    let write = |name: &str, frames: &[crate::captures::Record], rows: &[SampleRow]| {
        let dir = folder.path().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let notes = rows.iter().map(|row| (row.time, SampleRow::BLOCK, row.encode()));
        let path = dir.join("recording.pcapng.zst");
        record_notes(&path, &recorded(&["live", "-i", "v1"]), frames, notes.collect());
    };
    write("a", &frames, &[]);
    for frame in &mut frames {
        frame.time.0 += ahead;
    }
    let rows = readings(Time(first.0 + ahead));
    write("b", &frames, &rows);
    let captures = ["a/recording.pcapng.zst", "b/recording.pcapng.zst"];
    let moved = got(folder.path(), &captures);
    assert_eq!(moved.len(), rows.len());
    // The stored packets are the same, so the clocks are apart by 5 s and nothing else.
    let times: Vec<u64> = moved.time.iter().flatten().copied().collect();
    let expected: Vec<u64> = rows.iter().map(|row| row.time.0 - ahead).collect();
    assert_eq!(times, expected);
    let kept = got(folder.path(), &["--no-align", captures[0], captures[1]]);
    let times: Vec<u64> = kept.time.iter().flatten().copied().collect();
    assert_eq!(times, rows.iter().map(|row| row.time.0).collect::<Vec<u64>>());

    // A dataset beside a capture: its samples have the capture's clock.
    let dir = folder.path().join("d");
    std::fs::create_dir(&dir).unwrap();
    std::fs::rename(folder.path().join(captures[1]), dir.join("packets.pcapng.zst")).unwrap();
    write("d", &[], &rows);
    let joined = got(
        folder.path(),
        &[captures[0], "d/packets.pcapng.zst", "--samples", "d"],
    );
    let times: Vec<u64> = joined.time.iter().flatten().copied().collect();
    let moved = times.iter().filter(|time| expected.contains(time)).count();
    assert_eq!(moved, 2 * rows.len(), "those in the stream, and those joined");
}

/// Readings of a host each 50 ms: PFC pauses priority 3 for half of the time, 802.3x pauses nothing but is counted, marks and
/// CNPs come and go. 32 bits of the frames' counter wrap.
fn shown(first: Time) -> Vec<SampleRow> {
    let mut series = SampleSeries::default();
    let mut rows = Vec::new();
    for step in 0..16_u32 {
        let (moved, wave) = (f64::from(step), f64::from(step % 5 * 40));
        let of = |counter, priority: Option<u8>, value: f64| Sample {
            time: Time(first.0 + u64::from(step) * 50_000_000),
            ..sample(first, 0, counter, priority, value)
        };
        let on_link = |counter, value| Sample {
            object: "ens1f0np0".into(),
            ..of(counter, None, value)
        };
        let mut other = of(Counter::PortHwCounter, None, moved);
        other.details = vec!["unheard_of".into()];
        let samples = [
            of(Counter::PfcReceivePausedSeconds, Some(3), moved * 0.025),
            of(
                Counter::PfcReceivedFrames,
                Some(3),
                (4_294_967_000.0 + moved * 100.0) % 4_294_967_296.0,
            ),
            of(Counter::PfcReceivedFrames, Some(4), 7.0),
            on_link(Counter::PauseReceivedFrames, moved * 2.0),
            on_link(Counter::PauseReceivePausedSeconds, 0.0),
            of(Counter::PortEcnMarkedPacketsReceived, None, moved * 300.0 + wave),
            of(Counter::PortCnpSent, None, moved * 200.0 + wave),
            of(Counter::PortCnpHandled, None, 9.0),
            of(Counter::PortOutOfSequencePackets, None, moved),
            of(Counter::PortReceivedBytes, None, moved * 6.25e6),
            other,
        ];
        rows.extend(samples.iter().map(|sample| series.row(sample, None)));
    }
    rows
}

/// Leaves a recording in the target folder, and a page with markup in names, for the checks in a browser.
#[test]
fn what_a_counter_is_called_is_no_markup() {
    const EVIL: &str = "<script>a()</script>";
    let first = Capture::named("write_bw_loss").frames()[0].time;
    let mut rows = shown(first);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    recording(&target.join("counters"), &rows);
    for row in &mut rows {
        (row.node, row.object) = (EVIL.into(), EVIL.into());
    }
    let folder = tempdir().unwrap();
    recording(&folder.path().join("dir"), &rows);
    std::fs::copy(
        crate::captures::root().join("captures/write_bw_loss.pcap"),
        folder.path().join("c.pcap"),
    )
    .unwrap();
    let ran = crate::command::run(folder.path(), ["c.pcap", "--samples", "dir", "--format", "html"]).good();
    std::fs::write(target.join("markup-counter.html"), &ran.stdout).unwrap();
    assert!(!ran.stdout.contains("<script>a"));
}

#[test]
fn a_capture_without_roce_beside_rdma_bytes_is_blind() {
    let folder = tempdir().unwrap();
    let roce = Capture::named("rping").frames();
    let first = roce[0].time;
    // Frames go to the port of DNS: a packet socket shows such frames of a host whose RDMA bypasses the kernel.
    let mut others = roce.clone();
    for frame in &mut others {
        frame.data[36..38].copy_from_slice(&53_u16.to_be_bytes());
    }
    let mut series = SampleSeries::default();
    let rows: Vec<SampleRow> = [(0, 7e12), (1, 7e12 + 3e9)]
        .into_iter()
        .map(|(seconds, value)| {
            let bytes = Sample {
                object: "v1".into(),
                details: vec!["unicast".into()],
                bits: 64,
                ..sample(first, seconds, Counter::RdmaReceivedBytes, None, value)
            };
            series.row(&bytes, None)
        })
        .collect();
    for (name, frames, is_blind) in [
        ("blind", &others[..], true),
        ("empty", &[], true),
        ("seeing", &roce[..], false),
    ] {
        let dir = folder.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        let notes = rows.iter().map(|row| (row.time, SampleRow::BLOCK, row.encode()));
        record_notes(
            &dir.join("recording.pcapng.zst"),
            &recorded(&["live", "-i", "v1"]),
            frames,
            notes.collect(),
        );
        let ran = run(folder.path(), [name, "--fail-on", "critical"]);
        assert_eq!(ran.code, Some(i32::from(is_blind)), "{name}: {ran:?}");
        assert_eq!(
            ran.stdout.contains("v1 counted 3000000000 RDMA bytes"),
            is_blind,
            "{name}: {}",
            ran.stdout
        );
    }
}
