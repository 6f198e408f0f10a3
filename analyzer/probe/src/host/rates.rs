//! Rates of ports: how much a counter can have counted between two readings.

use std::collections::HashMap;

use roce_hosts::port_rate_bps;

/// Bits on the wire of the smallest RoCEv2 packet: a frame of 64 bytes (Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4 are 62, which
/// IEEE 802.3 fills up to 64), its preamble of 8 bytes and the gap of 12 behind it. Each packet counts at most once.
const MIN_PACKET_BITS: f64 = 672.0;
/// Ports and devices whose rates are known.
const MAX_RATES: usize = 1 << 14;

/// Rates in bit/s by object, of this reading and of the one before.
#[derive(Default)]
pub(super) struct Rates {
    now: HashMap<String, Option<f64>>,
    before: HashMap<String, Option<f64>>,
}

impl Rates {
    /// A reading begins.
    pub(super) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// A port of a device, with the text of its file `rate`. A device whose ports do not all say how fast they are has no rate.
    pub(super) fn add(&mut self, device: &str, port: &str, text: Option<&str>) {
        #[expect(clippy::cast_precision_loss, reason = "a rate has few digits")]
        let rate = text.and_then(port_rate_bps).map(|rate| rate as f64);
        if self.now.len() >= MAX_RATES {
            return;
        }
        self.now.insert(format!("{device}:{port}"), rate);
        let sum = self.now.entry(device.to_owned()).or_insert(Some(0.0));
        *sum = sum.zip(rate).map(|(sum, rate)| sum + rate);
    }

    /// An interface of a port, with the port's rate.
    pub(super) fn add_interface(&mut self, interface: &str, port: &str) {
        if self.now.len() < MAX_RATES {
            let rate = self.now.get(port).copied().flatten();
            self.now.insert(interface.to_owned(), rate);
        }
    }

    /// Bits per second of the last reading.
    pub(super) fn bits_per_second(&self, object: &str) -> Option<f64> {
        *self.now.get(object)?
    }

    /// Packets per second at the higher rate of the two readings: a link may have come up between them.
    pub(super) fn max_per_second(&self, object: &str) -> Option<f64> {
        let now = (*self.now.get(object)?)?;
        let before = self.before.get(object).copied().flatten().unwrap_or(now);
        Some(now.max(before) / MIN_PACKET_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_faster_reading_and_a_device_has_all_ports() {
        let mut rates = Rates::default();
        assert_eq!(rates.max_per_second("mlx5_0:1"), None);
        rates.begin();
        rates.add("mlx5_0", "1", Some("2.5 Gb/sec (1X SDR)"));
        rates.add("mlx5_0", "2", Some("100 Gb/sec (4X EDR)"));
        // 2.5e9 / 672 and 102.5e9 / 672.
        assert_eq!(
            rates.max_per_second("mlx5_0:1").map(f64::round),
            Some(3_720_238.0)
        );
        assert_eq!(
            rates.max_per_second("mlx5_0").map(f64::round),
            Some(152_529_762.0)
        );
        // The first port came up, the second has gone down, and no longer says how fast it is.
        rates.begin();
        rates.add("mlx5_0", "1", Some("100 Gb/sec (4X EDR)"));
        rates.add("mlx5_0", "2", None);
        assert_eq!(
            rates.max_per_second("mlx5_0:1").map(f64::round),
            Some(148_809_524.0)
        );
        assert_eq!(
            (rates.max_per_second("mlx5_0:2"), rates.max_per_second("mlx5_0")),
            (None, None)
        );
        rates.begin();
        rates.add("mlx5_0", "1", Some("10 Gb/sec (1X QDR)"));
        // It was faster at the reading before.
        assert_eq!(
            rates.max_per_second("mlx5_0:1").map(f64::round),
            Some(148_809_524.0)
        );
    }
}
