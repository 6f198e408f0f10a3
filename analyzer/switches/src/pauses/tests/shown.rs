//! Table and document.

use roce_model::{Counter, SampleSource, Span, Time};

use super::super::*;
use super::story::*;
use crate::device::Reading;

#[test]
fn the_table_fits_its_width() {
    let pauses = incast_with_a_virtual_function();
    for width in [80, 160] {
        for shown in [&pauses, &finish(&global(), LONG)] {
            let text = pause_text(shown, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
    let words = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let wide = words(&pause_text(&pauses, 160));
    for line in [
        "time 25.0 s, of it 10.0 s before, 10.0 s during the command, 5.0 s after",
        "level where kind before during after per second verdict",
        "switch, port leaf1 Ethernet1/1/2 PFC sent 0 640 0 64",
        "hypervisor esxi1 vmnic5 PFC received 0 640 0 64 agrees with leaf1 Ethernet1/1/2",
        "server gpu5 rocep11s0:1 marked 0 41,040 0 4,104",
        "server gpu5 ens192 PFC - - - - not visible in a virtual function",
        "switch, buffer leaf1 Ethernet1/1/2 drops 0 0 0 - ✓ nothing lost",
        // Ethernet1/1/3, which nothing moved at.
        "1 row is not shown: nothing moved there",
        "pattern ECN, then PFC",
        "order marks first at +1.2 s, pauses first at +3.8 s (readings every 0.2 s): ECN acts before PFC, as it should",
    ] {
        assert!(
            wide.iter().any(|shown| shown == line),
            "{line}\n{}",
            wide.join("\n")
        );
    }
    let narrow = words(&pause_text(&pauses, 80));
    for line in [
        "where kind before during after",
        "switch, port",
        "leaf1 Ethernet1/1/2 PFC sent 0 640 0",
        "64 per second; agrees with leaf1 Ethernet1/1/2",
        "not visible in a virtual function",
    ] {
        assert!(
            narrow.iter().any(|shown| shown == line),
            "{line}\n{}",
            narrow.join("\n")
        );
    }
    let global = words(&pause_text(&finish(&global(), LONG), 160));
    let line = "switch, port leaf1 Ethernet1/1/2 PFC 0 0 0 -";
    assert!(global.iter().any(|shown| shown == line), "{}", global.join("\n"));
}

#[test]
fn the_document_has_every_row() {
    let pauses = incast_with_a_virtual_function();
    let document = pause_json(&pauses);
    assert_eq!(document["rows"].as_array().unwrap().len(), pauses.rows.len());
    assert_eq!(document["pattern"], "ecn_then_pauses");
    assert_eq!(
        document["first_marks"],
        serde_json::json!({ "after_s": 1.0, "seen_s": 1.2 })
    );
    let unseen = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["object"] == "ens192")
        .unwrap();
    assert_eq!(
        (&unseen["during"], &unseen["not_known"]),
        (
            &serde_json::Value::Null,
            &"not visible in a virtual function".into()
        )
    );
}

#[test]
fn names_of_devices_do_not_steer_the_terminal() {
    let mut collector = PauseCollector::new(Span(1_000_000_000));
    for (second, value) in [(1, 0.0), (2, 5.0)] {
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(second * 1_000_000_000));
        reading.push(Counter::SwitchPfcTransmittedFrames, "Eth\u{1b}[2J1\n/1", value);
        collector.add_reading(&reading);
    }
    let text = pause_text(&collector.finish(&Inventory::default()), 80);
    assert!(text.contains("leaf1 Eth?[2J1?/1"), "{text}");
}
