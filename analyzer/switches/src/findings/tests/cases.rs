//! For each rule a device where it fires, and one near its threshold where it does not.

use std::borrow::Cow;

use roce_model::{Counter, Sample, SampleSource, Time};

use crate::device::{Adapter, QueueClass, Reading};

/// Time between the two readings.
const SECONDS: u64 = 10;
const PORT: &str = "Ethernet1/1/2";
const VMNIC: &str = "vmnic5";

/// Two readings of one device.
pub(super) struct Device {
    pub(super) before: Reading,
    pub(super) now: Reading,
}

impl Device {
    /// The device of a rule, as `fill` fills it.
    pub(super) fn new(id: &str, fill: fn(&mut Self)) -> Self {
        let (source, node) = if id.starts_with("switch.") {
            (SampleSource::Switch, "leaf1")
        } else {
            (SampleSource::Hypervisor, "esxi1")
        };
        let at = |seconds: u64| Reading::new(source, node, Time(seconds * 1_000_000_000));
        let mut device = Self {
            before: at(100),
            now: at(100 + SECONDS),
        };
        fill(&mut device);
        device
    }

    /// A counter, in both readings.
    pub(super) fn count(
        &mut self,
        counter: Counter,
        object: &str,
        queue: Option<&str>,
        details: &[&'static str],
        before: f64,
        now: f64,
    ) {
        for (reading, value) in [(&mut self.before, before), (&mut self.now, now)] {
            let sample = reading.push(counter, object, value);
            sample.queue = queue.map(Into::into);
            sample.details = details.iter().map(|detail| Cow::Borrowed(*detail)).collect();
        }
    }

    /// A gauge, in the later reading.
    pub(super) fn state(
        &mut self,
        counter: Counter,
        object: &str,
        details: &[&'static str],
        value: f64,
    ) -> &mut Sample {
        let sample = self.now.push(counter, object, value);
        sample.details = details.iter().map(|detail| Cow::Borrowed(*detail)).collect();
        sample
    }

    fn queue(&mut self, counter: Counter, queue: &str, details: &[&'static str], value: f64) {
        self.state(counter, PORT, details, value).queue = Some(queue.into());
    }

    fn pfc(&mut self, object: &str, priorities: &[u8]) {
        let (counter, details): (_, &[&str]) = match self.now.source {
            SampleSource::Switch => (Counter::SwitchPfcEnabled, &["port"]),
            _ => (Counter::HypervisorPfcEnabled, &[]),
        };
        for priority in 0..8 {
            let is_on = f64::from(u8::from(priorities.contains(&priority)));
            self.state(counter, object, details, is_on).priority = Some(priority);
        }
    }

    fn class(&mut self, queue: &str, priority_level: Option<u8>, has_ecn: bool) {
        self.now.classes.push(QueueClass {
            interface: PORT.into(),
            queue: queue.into(),
            priority_level,
            has_ecn,
        });
    }

    fn adapter(&mut self, name: &str) {
        self.now.adapters.push(Adapter {
            name: name.into(),
            driver: "nmlx5_core".into(),
            ..Adapter::default()
        });
    }

    fn parameters(&mut self, pfctx: &str, pfcrx: &str) {
        self.adapter(VMNIC);
        for (name, value) in [("nmlx5_core.pfctx", pfctx), ("nmlx5_core.pfcrx", pfcrx)] {
            self.now.settings.insert(name.into(), value.into());
        }
    }

    /// Queue 3 is lossless and sent `roce` bytes; the default queue sent `default` bytes in the time. The port has 1,000,000 bytes/s.
    fn queues(&mut self, roce: f64, default: f64) {
        self.queue(Counter::SwitchQueueNoDrop, "3", &["port"], 1.0);
        self.state(Counter::SwitchInterfaceRate, PORT, &["port"], 1e6);
        let bytes = Counter::SwitchQueueTransmittedBytes;
        self.count(bytes, PORT, Some("3"), &["port", "unicast"], 0.0, roce);
        // Enough for the total of one reading.
        self.count(bytes, PORT, Some("0"), &["port", "unicast"], 2e9, 2e9 + default);
    }
}

/// A rule's two devices.
pub(super) struct Case {
    pub(super) id: &'static str,
    pub(super) object: &'static str,
    /// A part of the finding's text.
    pub(super) text: &'static str,
    pub(super) fires: fn(&mut Device),
    pub(super) rests: fn(&mut Device),
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "switch.mmu_drops",
        object: PORT,
        text: "2 packets dropped on ingress in 10.0 s",
        fires: |device| {
            device.count(
                Counter::SwitchMmuDroppedPackets,
                PORT,
                None,
                &["port"],
                256_064.0,
                256_066.0,
            );
        },
        rests: |device| {
            device.count(
                Counter::SwitchMmuDroppedPackets,
                PORT,
                None,
                &["port"],
                256_066.0,
                256_066.0,
            );
        },
    },
    Case {
        id: "switch.lossless_queue_drops",
        object: PORT,
        text: "lossless queue 3 dropped 1 packet",
        fires: |device| {
            device.queue(Counter::SwitchQueueNoDrop, "3", &["port"], 1.0);
            device.count(
                Counter::SwitchQueueDroppedPackets,
                PORT,
                Some("3"),
                &["port", "unicast"],
                5.0,
                6.0,
            );
        },
        // The queue that drops is another.
        rests: |device| {
            device.queue(Counter::SwitchQueueNoDrop, "3", &["port"], 1.0);
            device.queue(Counter::SwitchQueueNoDrop, "0", &["port"], 0.0);
            device.count(
                Counter::SwitchQueueDroppedPackets,
                PORT,
                Some("3"),
                &["port", "unicast"],
                5.0,
                5.0,
            );
            device.count(
                Counter::SwitchQueueDroppedPackets,
                PORT,
                Some("0"),
                &["port", "unicast"],
                5.0,
                9.0,
            );
        },
    },
    Case {
        id: "switch.wred_drops",
        object: PORT,
        text: "WRED dropped 7 packets, 3 of them able to be marked",
        fires: |device| {
            let counter = Counter::SwitchQueueWredDroppedPackets;
            device.count(counter, PORT, Some("3"), &["port", "capable"], 1.0, 4.0);
            device.count(counter, PORT, Some("3"), &["port", "not_capable"], 0.0, 4.0);
        },
        rests: |device| {
            device.count(
                Counter::SwitchQueueWredDroppedPackets,
                PORT,
                Some("3"),
                &["port", "capable"],
                4.0,
                4.0,
            );
        },
    },
    Case {
        id: "switch.internal_only",
        object: "",
        text: "5 PFC frames inside of the switch and none at its ports",
        fires: |device| {
            device.count(Counter::SwitchPfcReceivedFrames, PORT, None, &["port"], 0.0, 0.0);
            device.count(
                Counter::SwitchPfcReceivedFrames,
                "ii1/1/1",
                None,
                &["internal"],
                0.0,
                5.0,
            );
        },
        rests: |device| {
            device.count(Counter::SwitchPfcReceivedFrames, PORT, None, &["port"], 0.0, 1.0);
            device.count(
                Counter::SwitchPfcReceivedFrames,
                "ii1/1/1",
                None,
                &["internal"],
                0.0,
                5.0,
            );
        },
    },
    Case {
        id: "switch.llfc_and_pfc",
        object: PORT,
        text: "802.3x pauses (received) and PFC on priority 3 are both on",
        fires: |device| {
            device.pfc(PORT, &[3]);
            device.state(Counter::SwitchPauseEnabled, PORT, &["port", "received"], 1.0);
        },
        // The other port has 802.3x.
        rests: |device| {
            device.pfc(PORT, &[3]);
            device.state(Counter::SwitchPauseEnabled, PORT, &["port", "received"], 0.0);
            device.pfc("Ethernet1/1/3", &[]);
            device.state(
                Counter::SwitchPauseEnabled,
                "Ethernet1/1/3",
                &["port", "received"],
                1.0,
            );
        },
    },
    Case {
        id: "switch.pfc_other_priority",
        object: PORT,
        text: "PFC is on for priority 3 and 5; the cluster's is 3",
        fires: |device| device.pfc(PORT, &[3, 5]),
        rests: |device| {
            device.pfc(PORT, &[3]);
            device.pfc("Ethernet1/1/3", &[]);
        },
    },
    Case {
        id: "switch.ecn_off",
        object: PORT,
        text: "queue 3 carries RoCE data and has no ECN",
        fires: |device| {
            device.now.queue_of_dscp.insert(26, "3".into());
            device.class("3", None, false);
        },
        rests: |device| {
            device.now.queue_of_dscp.insert(26, "3".into());
            device.class("3", None, true);
            device.class("0", None, false);
        },
    },
    Case {
        id: "switch.ecn_above_pfc",
        object: PORT,
        text: "queue 3 marks from 38,400 bytes on and pauses from 38,400 bytes on",
        fires: |device| {
            device.queue(Counter::SwitchEcnThreshold, "3", &["port", "min"], 38_400.0);
            device.queue(Counter::SwitchQueuePauseThreshold, "3", &["port"], 38_400.0);
        },
        // The maximum is above, the minimum below.
        rests: |device| {
            device.queue(Counter::SwitchEcnThreshold, "3", &["port", "min"], 38_399.0);
            device.queue(Counter::SwitchEcnThreshold, "3", &["port", "max"], 1_500_000.0);
            device.queue(Counter::SwitchQueuePauseThreshold, "3", &["port"], 38_400.0);
        },
    },
    Case {
        id: "switch.rdma_strict_priority",
        object: PORT,
        text: "queue 3 carries RoCE data and has strict priority, level 1",
        fires: |device| {
            device.queue(Counter::SwitchQueueNoDrop, "3", &["port"], 1.0);
            device.class("3", Some(1), true);
        },
        // The queue of CNPs has it.
        rests: |device| {
            device.queue(Counter::SwitchQueueNoDrop, "3", &["port"], 1.0);
            device.class("3", None, true);
            device.class("7", Some(1), false);
        },
    },
    Case {
        id: "switch.no_watchdog",
        object: "",
        text: "PFC is on and its watchdog is off",
        fires: |device| {
            device.pfc(PORT, &[3]);
            device.now.has_watchdog = Some(false);
        },
        // Not known.
        rests: |device| {
            device.pfc(PORT, &[3]);
            device.now.has_watchdog = None;
        },
    },
    Case {
        id: "switch.stormed",
        object: PORT,
        text: "the PFC watchdog keeps queue 3 shut now: its neighbour pauses it without end",
        fires: |device| {
            device
                .now
                .stormed_queues
                .insert((PORT.to_owned(), "3".to_owned()));
        },
        // It fired once, and opened the queue again.
        rests: |device| {
            device.now.stormed_queues.clear();
        },
    },
    Case {
        id: "switch.queue_unclassified",
        object: PORT,
        text: "the default queue sent 1,000,000 bytes and queue 3, that of RoCE, none",
        // 10 s of a tenth of 1,000,000 bytes/s.
        fires: |device| device.queues(0.0, 1e6),
        rests: |device| device.queues(0.0, 1e6 - 1.0),
    },
    Case {
        id: "hypervisor.global_pause_instead_of_pfc",
        object: VMNIC,
        text: "802.3x is on and PFC is off; 4 802.3x pause frames in 10.0 s",
        fires: |device| {
            device.pfc(VMNIC, &[]);
            device.state(Counter::HypervisorPauseEnabled, VMNIC, &["received"], 1.0);
            device.count(Counter::HypervisorPauseReceivedFrames, VMNIC, None, &[], 5.0, 9.0);
        },
        // Neither is on, and nothing grows.
        rests: |device| {
            device.pfc(VMNIC, &[]);
            device.state(Counter::HypervisorPauseEnabled, VMNIC, &["received"], 0.0);
            device.count(Counter::HypervisorPauseReceivedFrames, VMNIC, None, &[], 9.0, 9.0);
        },
    },
    Case {
        id: "hypervisor.pfc_not_negotiated",
        object: VMNIC,
        text: "DCB mode CEE and PFC is off",
        fires: |device| {
            device.pfc(VMNIC, &[]);
            device.state(Counter::HypervisorDcbMode, VMNIC, &["cee"], 1.0);
        },
        // CEE with PFC, and IEEE without.
        rests: |device| {
            device.pfc(VMNIC, &[3]);
            device.state(Counter::HypervisorDcbMode, VMNIC, &["cee"], 1.0);
            device.pfc("vmnic6", &[]);
            device.state(Counter::HypervisorDcbMode, "vmnic6", &["ieee"], 1.0);
        },
    },
    Case {
        id: "hypervisor.pause_storm",
        object: VMNIC,
        text: "1 pause storm of severity error",
        fires: |device| {
            device.count(
                Counter::HypervisorPauseStormEvents,
                VMNIC,
                None,
                &["error"],
                0.0,
                1.0,
            );
        },
        rests: |device| {
            device.count(
                Counter::HypervisorPauseStormEvents,
                VMNIC,
                None,
                &["error"],
                1.0,
                1.0,
            );
        },
    },
    Case {
        id: "hypervisor.drops",
        object: VMNIC,
        text: "3 packets dropped",
        fires: |device| {
            device.count(
                Counter::HypervisorDroppedPackets,
                VMNIC,
                None,
                &["received"],
                12.0,
                15.0,
            );
        },
        rests: |device| {
            device.count(
                Counter::HypervisorDroppedPackets,
                VMNIC,
                None,
                &["received"],
                12.0,
                12.0,
            );
        },
    },
    Case {
        id: "hypervisor.uneven",
        object: "",
        text: "PFC differs between adapters: vmnic6: off; vmnic5: priority 3",
        fires: |device| {
            device.pfc(VMNIC, &[3]);
            device.pfc("vmnic6", &[]);
        },
        // The other adapter is down.
        rests: |device| {
            device.pfc(VMNIC, &[3]);
            device.pfc("vmnic6", &[]);
            device.state(Counter::HypervisorNicUp, "vmnic6", &[], 0.0);
        },
    },
    Case {
        id: "hypervisor.module_parameters",
        object: "",
        text: "nmlx5_core.pfctx is 0x10 and nmlx5_core.pfcrx is not set: no PFC on priority 3",
        fires: |device| device.parameters("0x10", ""),
        rests: |device| device.parameters("0x08", "8"),
    },
];
