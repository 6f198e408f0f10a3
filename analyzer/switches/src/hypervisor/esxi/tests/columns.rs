//! Numbers and states beside each other that differ: a parser that takes the neighbour's is found here. The forms are those of the
//! design and of Broadcom's KB 341594; the numbers are made so that each one says where it belongs.

use super::*;

/// Answers about `vmnic5` alone.
fn read_of(texts: &[(&str, &str)]) -> Reading {
    let mut answers = Answers::default();
    for (command, text) in texts {
        answers.insert(command, text);
    }
    reading_of(&answers)
}

/// Samples of a counter: details and value.
fn values(reading: &Reading, counter: Counter) -> Vec<String> {
    let line = |sample: &Sample| {
        let details: Vec<String> = sample.details.iter().map(ToString::to_string).collect();
        format!("{} {}", details.join(","), sample.value)
            .trim()
            .to_owned()
    };
    reading.of(counter).map(line).collect()
}

#[test]
fn every_line_of_the_statistics_has_its_counter() {
    // Two lines of warnings before, and a counter that nobody knows between (F.2, trap 16).
    let text = "\
WARNING: the host is in maintenance mode
WARNING: a second line, with 5: a number in it
NIC statistics for vmnic5
   Packets received: 101
   Packets sent: 102
   Bytes received: 103
   Bytes sent: 104
   Receive packets dropped: 105
   Transmit packets dropped: 106
   Multicast packets received: 107
   Broadcast packets received: 108
   Multicast packets sent: 109
   Broadcast packets sent: 110
   Total receive errors: 111
   Receive length errors: 112
   Receive over errors: 113
   Receive CRC errors: 114
   Packets that nobody knows: 99
   Receive frame errors: 115
   Receive FIFO errors: 116
   Receive missed errors: 117
   Total transmit errors: 118
   Transmit aborted errors: 119
   Transmit carrier errors: 120
   Transmit FIFO errors: 121
   Transmit heartbeat errors: 122
   Transmit window errors: 123
";
    let reading = read_of(&[("esxcli network nic stats get -n vmnic5", text)]);
    assert_eq!(reading.problems, []);
    for (counter, value) in [
        (Counter::HypervisorReceivedPackets, "101"),
        (Counter::HypervisorTransmittedPackets, "102"),
        (Counter::HypervisorReceivedBytes, "103"),
        (Counter::HypervisorTransmittedBytes, "104"),
    ] {
        assert_eq!(values(&reading, counter), [value], "{}", counter.name());
    }
    assert_eq!(
        values(&reading, Counter::HypervisorDroppedPackets),
        ["received 105", "transmitted 106"]
    );
    assert_eq!(
        values(&reading, Counter::HypervisorErrors),
        [
            "received,all 111",
            "received,length 112",
            "received,over 113",
            "received,crc 114",
            "received,frame 115",
            "received,fifo 116",
            "received,missed 117",
            "transmitted,all 118",
            "transmitted,aborted 119",
            "transmitted,carrier 120",
            "transmitted,fifo 121",
            "transmitted,heartbeat 122",
            "transmitted,window 123",
        ]
    );
    assert_eq!(
        values(&reading, Counter::HypervisorNicStatistic),
        [
            "Multicast packets received 107",
            "Broadcast packets received 108",
            "Multicast packets sent 109",
            "Broadcast packets sent 110",
            "Packets that nobody knows 99",
        ]
    );
}

#[test]
fn every_name_of_a_driver_has_its_counter() {
    let text = "\
device {
   rxPauseCtrlPhy: 101
   txPauseCtrlPhy: 102
   rx_global_pause: 103
   rx_global_pause_duration: 4000000
   tx_global_pause: 105
   tx_global_pause_duration: 6000000
   rx_global_pause_transition: 107
   rx_prio3_pause: 108
   rx_prio3_pause_duration: 9000000
   tx_prio3_pause: 110
   txPauseStormWarningEvents: 111
   txPauseStormErrorEvents: 112
}
";
    let reading = read_of(&[("vsish -e get /net/pNics/vmnic5/stats", text)]);
    assert_eq!(reading.problems, []);
    // Microseconds are seconds.
    for (counter, expected) in [
        (Counter::HypervisorPauseControlReceivedFrames, "101"),
        (Counter::HypervisorPauseControlTransmittedFrames, "102"),
        (Counter::HypervisorPauseReceivedFrames, "103"),
        (Counter::HypervisorPauseReceivePausedSeconds, "4"),
        (Counter::HypervisorPauseTransmittedFrames, "105"),
        (Counter::HypervisorPauseTransmitPausedSeconds, "6"),
        (Counter::HypervisorPauseTransitions, "107"),
        (Counter::HypervisorPfcReceivedFrames, "108"),
        (Counter::HypervisorPfcReceivePausedSeconds, "9"),
        (Counter::HypervisorPfcTransmittedFrames, "110"),
    ] {
        assert_eq!(values(&reading, counter), [expected], "{}", counter.name());
    }
    assert_eq!(
        values(&reading, Counter::HypervisorPauseStormEvents),
        ["warning 111", "error 112"]
    );
    // Names of Intel's and other drivers.
    for (received, sent) in [
        ("rx_xoff", "tx_xoff"),
        ("rxpause", "txpause"),
        ("rx_pause_frames", "tx_pause_frames"),
    ] {
        let text = format!("{received}: 113\n{sent}: 114\n");
        let reading = read_of(&[("vsish -e cat /net/pNics/vmnic5/stats", &text)]);
        assert_eq!(
            values(&reading, Counter::HypervisorPauseReceivedFrames),
            ["113"],
            "{received}"
        );
        assert_eq!(
            values(&reading, Counter::HypervisorPauseTransmittedFrames),
            ["114"],
            "{sent}"
        );
    }
}

/// The table of `pauseParams`: `set` are `Pause RX` and `Pause TX`, then negotiation, its result being available, and its result.
fn table(set: [bool; 2], negotiation: [bool; 2], result: [bool; 2]) -> String {
    let cells: Vec<String> = [set, negotiation, result]
        .concat()
        .iter()
        .zip([8, 8, 16, 33, 30, 30])
        .map(|(cell, width)| format!("  {cell:>width$}"))
        .collect();
    format!(
        "NIC     Pause Params Supported  Pause RX  Pause TX  Auto Negotiation  Auto Negotiation Resolution Avail  RX Auto Negotiation Resolution  TX Auto Negotiation Resolution\n\
         ------  ----------------------  --------  --------  ----------------  ---------------------------------  ------------------------------  ------------------------------\n\
         vmnic5                    true{}\n",
        cells.concat()
    )
}

#[test]
fn directions_of_802_3x_stay_apart_and_the_negotiated_state_counts() {
    const PAUSES: &str = "esxcli network nic pauseParams list";
    const NIC: &str = "esxcli network nic get -n vmnic5";
    let one = ("vsish -e get /net/pNics/vmnic5/stats", "rx_xoff: 1\n");
    let enabled = |more: &[(&str, &str)]| {
        values(
            &read_of(&[&[one], more].concat()),
            Counter::HypervisorPauseEnabled,
        )
    };
    let of = |set, negotiation, result| enabled(&[(PAUSES, &table(set, negotiation, result))]);
    let (no, yes) = ([false, false], [true, true]);
    assert_eq!(of([true, false], no, no), ["received 1", "transmitted 0"]);
    assert_eq!(of([false, true], no, no), ["received 0", "transmitted 1"]);
    // The two ends agreed on these values, where they did.
    assert_eq!(
        of([true, false], yes, [false, true]),
        ["received 0", "transmitted 1"]
    );
    assert_eq!(
        of([true, false], [true, false], [false, true]),
        ["received 1", "transmitted 0"]
    );
    assert_eq!(
        of([true, false], [false, true], [false, true]),
        ["received 1", "transmitted 0"]
    );
    // An adapter's own answer counts where the table has none.
    let own = "   Driver Info: \n         Driver: nmlx5_core\n   Name: vmnic5\n   Pause RX: false\n   Pause TX: true\n";
    assert_eq!(enabled(&[(NIC, own)]), ["received 0", "transmitted 1"]);
    let both = [(NIC, own), (PAUSES, &*table([true, false], no, no))];
    assert_eq!(enabled(&both), ["received 1", "transmitted 0"]);
}

/// F.2, trap 16: warnings before, and no vsish.
#[test]
fn warnings_before_an_answer_change_nothing() {
    let plain = answers("esxi-pfc");
    let mut warned = Answers::default();
    for (command, text) in plain.iter() {
        let warning =
            "WARNING: certificate verification is off\nWARNING: [deprecated] use another namespace\n";
        warned.insert(command, &format!("{warning}{text}"));
    }
    let (plain, warned) = (reading_of(&plain), reading_of(&warned));
    assert_eq!(warned.samples, plain.samples);
    assert_eq!((warned.adapters, warned.problems), (plain.adapters, vec![]));
}

/// A text whose last line is cut inside of a number has no such number, and says so.
#[test]
fn a_cut_line_is_left_out() {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/data/fabric/esxi-no-vsish/esxcli_network_nic_dcb_status_get_-n_vmnic5.txt"),
    )
    .unwrap();
    let sent = text.find("Sent PFC Frames:").unwrap();
    let end = sent + text[sent..].find('\n').unwrap();
    let command = "esxcli network nic dcb status get -n vmnic5";
    let whole = read_of(&[(command, &text[..=end])]);
    assert_eq!(whole.of(Counter::HypervisorPfcTransmittedFrames).count(), 8);
    assert_eq!(whole.problems, []);
    let cut = read_of(&[(command, &text[..end])]);
    assert_eq!(cut.of(Counter::HypervisorPfcTransmittedFrames).count(), 0);
    assert_eq!(cut.of(Counter::HypervisorPfcEnabled).count(), 8);
    let reasons: Vec<Reason> = cut.problems.iter().map(|problem| problem.reason).collect();
    assert_eq!(reasons, [Reason::Parse]);
}

/// A problem of a recorded folder names the command, not the file.
#[test]
fn problems_name_commands() {
    let commands: Vec<String> = folder("esxi-down")
        .problems
        .into_iter()
        .map(|problem| problem.command)
        .collect();
    assert_eq!(
        commands,
        [
            "vsish -e get /net/pNics/vmnic6/stats",
            "esxcli network nic dcb status get -n vmnic6",
        ]
    );
}
