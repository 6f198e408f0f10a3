//! Settings of `--set`, and what follows from the cluster's.

use crate::inventory::Cluster;

/// Keys of `--set`, and what they set.
pub const KEYS: [(&str, &str); 7] = [
    (
        "ecn_min",
        "queue length from which packets are marked: bytes, 150k or 2m",
    ),
    (
        "ecn_max",
        "queue length from which all packets are marked: bytes, 3000k or 3m",
    ),
    (
        "ecn_probability",
        "greatest probability of marking below ecn_max, 1 to 100 percent",
    ),
    (
        "mtu",
        "MTU in bytes, 1500 to 9216 (default 9000 of hosts, 9216 of switches)",
    ),
    ("bandwidth", "share of the RoCE queue, 1 to 99 percent"),
    ("dev", "RDMA device of the host's interface, such as mlx5_0"),
    ("port", "port of the RDMA device, 1 or 2"),
];

/// Longest name of an interface or device.
const MAX_NAME: usize = 64;

/// Settings beyond the inventory's cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Queue length in bytes from which packets are marked.
    pub ecn_min: u64,
    /// Queue length in bytes from which all packets are marked.
    pub ecn_max: u64,
    /// Greatest probability of marking below `ecn_max`, in percent.
    pub ecn_probability: u64,
    /// MTU in bytes; `None`: 9000 of hosts, 9216 of switches.
    pub mtu: Option<u64>,
    /// Share of the RoCE queue in percent.
    pub bandwidth: u64,
    /// RDMA device.
    pub dev: Option<String>,
    /// Port of the RDMA device.
    pub port: u64,
    /// True if a threshold was set: a check compares with it.
    pub has_thresholds: bool,
}

impl Default for Settings {
    // Thresholds and share are those of Cisco's and NVIDIA's examples for 100 Gbit/s ports.
    fn default() -> Self {
        Self {
            ecn_min: 150_000,
            ecn_max: 3_000_000,
            ecn_probability: 7,
            mtu: None,
            bandwidth: 60,
            dev: None,
            port: 1,
            has_thresholds: false,
        }
    }
}

impl Settings {
    /// Lines that lower the shares of other queues, in percent, so that they come to 100 with that of RoCE data: each in its proportion,
    /// rounded down. A share has the lines that lead to its number. None where they fit.
    pub(super) fn lowered(&self, shares: &[(String, u64)]) -> Vec<String> {
        let sum: u64 = shares.iter().map(|(_, share)| (*share).min(100)).sum();
        let left = 100_u64.saturating_sub(self.bandwidth);
        let mut lines = Vec::new();
        for (line, share) in shares.iter().filter(|(_, share)| sum > left && *share > 0) {
            let lowered = format!("{line} {}", (*share).min(100) * left / sum);
            lines.extend(lowered.lines().map(str::to_owned));
        }
        lines
    }

    /// The settings of these `KEY=VALUE`s.
    ///
    /// # Errors
    /// If a key is not known, a value has another form, or the thresholds are not in order.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut settings = Self::default();
        for pair in pairs {
            settings.set(pair)?;
        }
        if settings.ecn_min >= settings.ecn_max {
            return Err(format!(
                "ecn_max: {} bytes are not more than ecn_min, {} bytes",
                settings.ecn_max, settings.ecn_min
            ));
        }
        Ok(settings)
    }

    /// Takes a `KEY=VALUE`.
    fn set(&mut self, text: &str) -> Result<(), String> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("'{text}' is not KEY=VALUE"))?;
        let number = |range: std::ops::RangeInclusive<u64>| {
            let number = value.parse().ok().filter(|number| range.contains(number));
            let expected = || {
                format!(
                    "{key}: '{value}' is not a number from {} to {}",
                    range.start(),
                    range.end()
                )
            };
            number.ok_or_else(expected)
        };
        let bytes = || {
            bytes(value).ok_or_else(|| format!("{key}: '{value}' is not a size such as 153600, 150k or 3m"))
        };
        match key {
            "ecn_min" => (self.ecn_min, self.has_thresholds) = (bytes()?, true),
            "ecn_max" => (self.ecn_max, self.has_thresholds) = (bytes()?, true),
            "ecn_probability" => self.ecn_probability = number(1..=100)?,
            "mtu" => self.mtu = Some(number(1_500..=9_216)?),
            "bandwidth" => self.bandwidth = number(1..=99)?,
            "port" => self.port = number(1..=2)?,
            "dev" => {
                check_name(value).map_err(|error| format!("dev: {error}"))?;
                self.dev = Some(value.to_owned());
            }
            _ => return Err(format!("there is no setting '{key}'")),
        }
        Ok(())
    }

    /// MTU of a host.
    pub(super) fn host_mtu(&self) -> u64 {
        self.mtu.unwrap_or(9_000)
    }

    /// MTU of a switch.
    pub(super) fn switch_mtu(&self) -> u64 {
        self.mtu.unwrap_or(9_216)
    }

    /// Thresholds in units of 1000 bytes, which NX-OS and EOS call kbytes.
    pub(super) fn kbytes(&self) -> (u64, u64) {
        (
            self.ecn_min.div_ceil(1_000).max(1),
            self.ecn_max.div_ceil(1_000).max(1),
        )
    }
}

/// Bytes in a text such as `153600`, `150k` (150,000) or `3m` (3,000,000), up to 1 GB.
fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (number, unit) = match lower.strip_suffix('k') {
        Some(number) => (number, 1_000),
        None => match lower.strip_suffix('m') {
            Some(number) => (number, 1_000_000),
            None => (lower.as_str(), 1),
        },
    };
    let number: u64 = number.parse().ok()?;
    let bytes = number.checked_mul(unit)?;
    (1..=1_000_000_000).contains(&bytes).then_some(bytes)
}

/// Checks the name of an interface or device: commands are copied into shells.
///
/// # Errors
/// If it has other characters than names have.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte);
    let starts = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if name.len() > MAX_NAME || !starts || !name.bytes().all(is_name) {
        return Err(format!("'{name}' is not the name of an interface or device"));
    }
    Ok(())
}

/// The type of service of RoCE data: its DSCP, and ECT(0) in the two lower bits (RFC 3168).
pub(super) fn type_of_service(cluster: &Cluster) -> u8 {
    (cluster.dscp << 2) | 2
}

/// The priority of CNPs: the class of their DSCP, or another one if that is the lossless priority.
pub(super) fn cnp_priority(cluster: &Cluster) -> u8 {
    let priority = cluster.cnp_dscp >> 3;
    match (priority == cluster.priority, priority) {
        (false, priority) => priority,
        (true, 6) => 7,
        (true, _) => 6,
    }
}

/// The values of eight priorities, for tools that take a list: 1 for the lossless priority.
pub(super) fn priority_list(priority: u8) -> String {
    let bits: Vec<&str> = (0..8)
        .map(|other| if other == priority { "1" } else { "0" })
        .collect();
    bits.join(",")
}
