//! Findings of MRC that no vector of `tests/data/mrc` shows both ways: each fires in a simulated run where it is true, and in none that
//! differs in that alone.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::command::{document, run};

/// A run of MRC over four planes of four paths each.
#[derive(Clone, Copy)]
struct Run {
    senders: u32,
    /// Lines of `[mrc]` that replace or follow those below.
    keys: &'static str,
    /// Tables of faults.
    faults: &'static str,
    /// A fault of a path, of each plane.
    everywhere: &'static str,
    /// The host whose ports are captured.
    tap: &'static str,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            senders: 1,
            keys: "evs = 16\nguard = 48\n",
            faults: "",
            everywhere: "",
            tap: "h1",
        }
    }
}

impl Run {
    fn scenario(&self) -> String {
        let Self {
            senders,
            keys,
            faults,
            everywhere,
            tap,
        } = self;
        let receiver = senders + 1;
        let of_plane = |plane| match *everywhere {
            "" => String::new(),
            keys => format!("[[mrc.path]]\nplane = {plane}\n{keys}\n"),
        };
        let planes: String = (0..4).map(of_plane).collect();
        format!(
            "seed = 5\nduration = \"600us\"\n[network]\nhosts = {receiver}\nrate = \"25Gbps\"\nipv6 = true\n[nic]\nmtu = 1024\n\
             [mrc]\nplanes = 4\npaths = 4\nsrv6 = true\ntimeout = 6\nwindow = \"64KiB\"\n{keys}\n{faults}\n{planes}\n\
             [[flow]]\ntransport = \"mrc\"\nfrom = \"h1..h{senders}\"\nto = \"h{receiver}\"\nmessage = \"16KiB\"\noutstanding = 3\n\
             [[tap]]\nat = \"{tap}\"\nsnaplen = 192\n"
        )
    }

    /// The finding of an id, of the real command.
    fn finding(&self, id: &str) -> Option<Value> {
        let folder = tempdir().unwrap();
        fs::write(folder.path().join("mrc.toml"), self.scenario()).unwrap();
        run(folder.path(), ["simulate", "mrc.toml", "-o", "mrc.pcapng"]).good();
        let document = document(folder.path(), ["mrc.pcapng"]);
        let findings = document["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["id"] == id).cloned()
    }
}

/// Asserts that a finding is there in the first run and not in the second one; gives it.
#[track_caller]
fn tells(id: &str, bad: Run, good: Run) -> Value {
    let false_alarm = good.finding(id);
    assert!(false_alarm.is_none(), "{id}: {false_alarm:?}");
    bad.finding(id).unwrap_or_else(|| panic!("{id} is missing"))
}

#[test]
fn incast_is_several_senders_whose_packets_the_last_switch_trims() {
    let of = |senders| Run {
        senders,
        keys: "evs = 16\nguard = 48\nqueue = \"12KiB\"\n",
        tap: if senders == 1 { "h2" } else { "h4" },
        ..Run::default()
    };
    tells("mrc.trim.lasthop", of(3), of(1));
}

#[test]
fn a_slow_path_takes_longer_than_all_others() {
    let slow = Run {
        faults: "[[mrc.path]]\nplane = 1\npath = 2\ndelay = \"5us\"\n",
        ..Run::default()
    };
    // The difference of 1 us is less than paths may differ.
    let even = Run {
        faults: "[[mrc.path]]\nplane = 1\npath = 2\ndelay = \"1us\"\n",
        ..Run::default()
    };
    tells("mrc.path.slow", slow, even);
}

#[test]
fn a_port_that_goes_down_is_reported_by_its_host() {
    // The first mask of a host says nothing of what was before: the second one has lost a bit.
    let port = Run {
        faults: "[[mrc.port]]\nhost = \"h2\"\nplane = 1\ndown = \"100us\"\n[[mrc.port]]\nhost = \"h2\"\nplane = 3\ndown = \"200us\"\n",
        ..Run::default()
    };
    // A path of the same plane drops everything: the port is up.
    let path = Run {
        faults: "[[mrc.path]]\nplane = 3\npath = 0\nloss = 1.0\nbegin = \"200us\"\n",
        ..Run::default()
    };
    tells("mrc.port.down", port, path);
}

#[test]
fn a_hasty_sender_repeats_what_was_only_overtaken() {
    let slow = "[[mrc.path]]\nplane = 1\npath = 2\ndelay = \"4us\"\n";
    let hasty = Run {
        keys: "evs = 16\nguard = 4\n",
        faults: slow,
        ..Run::default()
    };
    let patient = Run {
        keys: "evs = 16\nguard = 400\n",
        faults: slow,
        ..Run::default()
    };
    tells("mrc.retransmit.spurious", hasty, patient);
}

#[test]
fn a_connection_fails_that_reaches_nobody() {
    let fails = Run {
        keys: "evs = 16\nguard = 48\nretries = 2\n",
        everywhere: "loss = 1.0\nbegin = \"100us\"",
        ..Run::default()
    };
    let recovers = Run {
        everywhere: "loss = 1.0\nbegin = \"100us\"\nend = \"150us\"",
        ..fails
    };
    let found = tells("mrc.retransmit.timeout", recovers, Run::default());
    assert_eq!(found["severity"], "warning");
    assert!(recovers.finding("mrc.qp.failed").is_none());
    // Nothing on the wire says that a sender has given up: what is missing are its packets.
    assert!(fails.finding("mrc.qp.failed").is_none());
}

#[test]
fn a_switch_is_suspect_that_all_dead_paths_have_in_common() {
    let keys = "evs = 16\nguard = 48\nlosses_to_leave = 2\nprobe_interval = \"50us\"\n";
    // Path 1 of each plane goes over the switch 2001, which no other one does.
    let one = Run {
        keys,
        everywhere: "path = 1\nloss = 1.0\nbegin = \"100us\"",
        ..Run::default()
    };
    let two = Run {
        faults: "[[mrc.path]]\nplane = 0\npath = 1\nloss = 1.0\nbegin = \"100us\"\n\
                 [[mrc.path]]\nplane = 2\npath = 3\nloss = 1.0\nbegin = \"100us\"\n",
        everywhere: "",
        ..one
    };
    let found = tells("mrc.switch.suspect", one, two);
    assert!(found["summary"].as_str().unwrap().contains("2001"), "{found}");
    assert!(two.finding("mrc.path.dead").is_some());
}
