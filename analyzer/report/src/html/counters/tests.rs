use std::collections::BTreeSet;

use roce_model::{Counter, SampleRow, Span, Time};

use super::*;

fn row(object: &'static str, counter: Counter, seconds: u64, change: f64) -> SampleRow {
    SampleRow {
        time: Time(seconds * Span::SECOND.0),
        source: "host",
        node: "h1".into(),
        object: object.into(),
        counter: counter.name(),
        kind: counter.kind().name(),
        unit: counter.unit(),
        change: Some(change),
        interval_ns: Some(Span::SECOND.0),
        ..SampleRow::default()
    }
}

fn gathered(rows: &[SampleRow]) -> GatheredCounters {
    let mut columns = SampleColumns::default();
    columns.extend(rows);
    let mut gathered = GatheredCounters::default();
    gathered.add(&columns);
    gathered
}

#[test]
fn topics_name_counters_of_the_catalogue_once() {
    let mut names = BTreeSet::new();
    for (name, _) in TOPICS.iter().flat_map(|topic| topic.counters) {
        assert!(Counter::from_name(name).is_some(), "{name}");
        assert!(names.insert(name), "{name} twice");
    }
}

#[test]
fn topics_of_gauges_have_gauges_alone() {
    for topic in &TOPICS {
        for (name, _) in topic.counters {
            let is_gauge = Counter::from_name(name).map(Counter::kind) == Some(roce_model::SampleKind::Gauge);
            assert_eq!(topic.has_gauge(name), is_gauge, "{name}");
        }
    }
}

#[test]
fn no_track_mixes_pfc_and_global_pause() {
    for topic in &TOPICS {
        let of = |prefix: &str| topic.counters.iter().any(|(name, _)| name.starts_with(prefix));
        assert!(!(of("pfc_") && of("pause_")), "{}", topic.name);
        assert!(!of("pause_") || !topic.name.contains("PFC"), "{}", topic.name);
        let counts_both = topic.counters.iter().any(|(name, _)| name.contains("control"));
        let is_of_both = topic.counters.iter().all(|(name, _)| name.contains("control"));
        assert_eq!(counts_both, is_of_both, "{}", topic.name);
    }
}

#[test]
fn gauges_of_gpus_are_drawn_by_their_values() {
    let gauge = |counter: Counter, seconds: u64, value: f64| SampleRow {
        source: "gpu",
        value,
        change: None,
        ..row("gpu0", counter, seconds, 0.0)
    };
    let mut rows: Vec<SampleRow> = (1..=2_000)
        .map(|second| {
            gauge(
                Counter::GpuUtilization,
                second,
                if second % 2 == 0 { 1.0 } else { 0.5 },
            )
        })
        .collect();
    rows.push(gauge(Counter::GpuPower, 2, 681.0));
    // A gauge without a track, and a first reading, of which nobody knows since when it holds.
    rows.push(gauge(Counter::GpuTemperature, 2, 64.0));
    rows.push(SampleRow {
        interval_ns: None,
        ..gauge(Counter::GpuMemoryUsed, 2, 1e9)
    });
    let drawn = gathered(&rows).drawn(Time(0));
    let tracks: Vec<(&str, &str)> = drawn
        .tracks
        .iter()
        .map(|track| (track.name.as_str(), track.scale))
        .collect();
    assert_eq!(tracks, [("GPU load", "ratio"), ("GPU power", "watts")]);
    let load = &drawn.tracks[0].layers[0];
    assert!(load.changes.len() <= MAX_CHANGES);
    // Half of 2,000 seconds at 1 and half at 0.5: 1,500 s of load, whatever was merged.
    let second = roce_model::value_of(Span::SECOND.0);
    let sum: f64 = load.changes.iter().map(|(_, _, by)| by / second).sum();
    assert!((sum - 1_500.0).abs() < 1e-6, "{sum}");
    assert_eq!(drawn.left_out, 0);
}

#[test]
fn what_moved_is_drawn_the_most_telling_first() {
    let mut paused = row("ens1", Counter::PfcReceivePausedSeconds, 2, 0.5);
    paused.priority = Some(3);
    let drawn = gathered(&[
        row("mlx5_0:1", Counter::PortReceivedBytes, 2, 1e9),
        row("mlx5_0:1", Counter::PortCnpSent, 2, 40.0),
        row("mlx5_1:1", Counter::PortCnpSent, 2, 70.0),
        row("mlx5_0:1", Counter::PortCnpHandled, 2, 0.0),
        row("mlx5_0:1", Counter::PortHwCounter, 2, 5.0),
        paused,
    ])
    .drawn(Time(Span::SECOND.0));
    let tracks: Vec<(&str, Vec<&str>)> = drawn
        .tracks
        .iter()
        .map(|track| {
            let layers = track.layers.iter().map(|layer| layer.name.as_str());
            (track.name.as_str(), layers.collect())
        })
        .collect();
    assert_eq!(
        tracks,
        [
            ("Paused by PFC", vec!["ens1 own sending, priority 3"]),
            ("CNPs counted", vec!["mlx5_1:1 sent", "mlx5_0:1 sent"]),
            ("Bytes counted", vec!["mlx5_0:1 received"]),
        ]
    );
    assert_eq!(drawn.left_out, 1, "a counter without a common name");
    let second = i64::try_from(Span::SECOND.0).unwrap();
    assert_eq!(drawn.tracks[0].layers[0].changes, [(0, second, 0.5)]);
}

#[test]
fn nodes_have_tracks_of_their_own() {
    let other = SampleRow {
        node: "h2".into(),
        ..row("mlx5_0:1", Counter::PortCnpSent, 2, 7.0)
    };
    let drawn = gathered(&[row("mlx5_0:1", Counter::PortCnpSent, 2, 40.0), other]).drawn(Time(0));
    let names: Vec<&str> = drawn.tracks.iter().map(|track| track.name.as_str()).collect();
    assert_eq!(names, ["CNPs counted, h1", "CNPs counted, h2"]);
}

#[test]
fn levels_stand_in_the_order_of_the_way() {
    let at = |source: &'static str, node: &'static str, counter: Counter, detail: Option<&'static str>| {
        SampleRow {
            source,
            node: node.into(),
            detail: detail.map(Into::into),
            ..row("x", counter, 2, 5.0)
        }
    };
    let drawn = gathered(&[
        at(
            "switch",
            "a-leaf",
            Counter::SwitchPriorityPfcReceivedFrames,
            Some("internal"),
        ),
        at(
            "switch",
            "a-leaf",
            Counter::SwitchPriorityPfcReceivedFrames,
            Some("port"),
        ),
        at("hypervisor", "esxi", Counter::HypervisorPfcReceivedFrames, None),
        at("host", "server", Counter::PfcReceivedFrames, None),
        at(
            "switch",
            "a-leaf",
            Counter::SwitchInterfaceDiscards,
            Some("port,transmit"),
        ),
    ])
    .drawn(Time(0));
    let names: Vec<&str> = drawn.tracks.iter().map(|track| track.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "PFC frames, server",
            "PFC frames, esxi",
            "PFC frames, a-leaf",
            "PFC frames, inside a-leaf",
            "Drops counted, a-leaf"
        ]
    );
    // The kind of the interface is in the track's name.
    assert_eq!(drawn.tracks[2].layers[0].name, "x received");
    assert_eq!(drawn.tracks[4].layers[0].name, "x discarded, transmit");
}

#[test]
fn long_series_are_merged_and_keep_their_sum() {
    let rows: Vec<SampleRow> = (1..=5_000)
        .map(|seconds| {
            row(
                "mlx5_0:1",
                Counter::PortCnpSent,
                seconds,
                f64::from(u8::from(seconds % 3 == 0)),
            )
        })
        .collect();
    let gathered = gathered(&rows);
    let changes = gathered.series.values().next().unwrap();
    assert!(changes.list.len() <= MAX_CHANGES);
    // Every third of 5,000 seconds.
    assert_eq!(Some(changes.sum), Some(1_666.0));
    let sum = changes.list.iter().map(|change| change.by).sum::<f64>();
    assert_eq!(Some(sum), Some(1_666.0));
    assert_eq!(changes.list[0].from, 0);
    assert_eq!(changes.list[changes.list.len() - 1].to, 5_000 * Span::SECOND.0);
}

#[test]
fn tracks_layers_and_series_are_bounded() {
    let names: Vec<String> = (0..MAX_SERIES + 5)
        .map(|number| format!("d{number:05}"))
        .collect();
    let rows: Vec<SampleRow> = names
        .iter()
        .map(|name| SampleRow {
            object: name.clone().into(),
            ..row("", Counter::PortCnpSent, 2, 1.0)
        })
        .collect();
    let long = SampleRow {
        node: "n".repeat(1 << 16).into(),
        ..row("", Counter::PortCnpSent, 2, 1.0)
    };
    let known = gathered(&[long]);
    assert_eq!(
        known.series.keys().next().map(|key| key.0.1.len()),
        Some(MAX_NAME)
    );
    let drawn = gathered(&rows).drawn(Time(0));
    assert_eq!(
        (drawn.tracks.len(), drawn.tracks[0].layers.len()),
        (1, MAX_LAYERS)
    );
    assert_eq!(
        (drawn.left_out, drawn.rows_left_out),
        (MAX_SERIES - MAX_LAYERS, 5)
    );
    let hosts: Vec<SampleRow> = names[..100]
        .iter()
        .map(|name| SampleRow {
            node: name.clone().into(),
            ..row("mlx5_0:1", Counter::PortCnpSent, 2, 1.0)
        })
        .collect();
    let drawn = gathered(&hosts).drawn(Time(0));
    assert_eq!(
        (drawn.tracks.len(), drawn.left_out),
        (MAX_TRACKS, 100 - MAX_TRACKS)
    );
}
