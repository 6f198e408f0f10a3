//! Results that fail a script: `nccl.busbw<80GiB/s`.

use core::fmt;
use core::str::FromStr;

use super::measured::Measurement;

/// A quantity of measurements, and the bound beyond which it fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    text: String,
    tool: String,
    field: Field,
    size: Option<u64>,
    is_at_least: bool,
    /// In bit/s, microseconds, or counted.
    bound: f64,
    /// The unit of the bound as it was written, and its size in these.
    unit: (&'static str, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Goodput,
    Bus,
    Latency,
    Retransmits,
    Lost,
    Wrong,
}

/// If an expectation holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// It holds, by this value.
    Holds(f64),
    /// It does not hold, by this value.
    Fails(f64),
    /// Nothing of this kind was measured.
    NotMeasured,
}

/// Names of the tools in expectations, and the beginnings of the programs' names that each has.
const TOOLS: [(&str, &[&str]); 8] = [
    ("perftest", &["ib_", "perftest"]),
    ("iperf", &["iperf"]),
    ("nccl", &["nccl"]),
    ("pytorch", &["pytorch"]),
    ("qperf", &["qperf"]),
    ("osu", &["osu"]),
    ("ucx", &["ucx"]),
    ("fabtests", &["fabtests"]),
];

impl Field {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "goodput" | "algbw" => Self::Goodput,
            "busbw" => Self::Bus,
            "latency" => Self::Latency,
            "retransmits" => Self::Retransmits,
            "lost" => Self::Lost,
            "wrong" => Self::Wrong,
            _ => return None,
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "counts, compared with a bound")]
    fn value(self, row: &Measurement) -> Option<f64> {
        match self {
            Self::Goodput => row.goodput_bps,
            Self::Bus => row.bus_bps,
            Self::Latency => row.latency?.usual(),
            Self::Retransmits => row.retransmits.map(|count| count as f64),
            Self::Lost => row.lost_ratio,
            Self::Wrong => row.wrong.map(|count| count as f64),
        }
    }

    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Goodput | Self::Bus => &[
                ("Gbit/s", 1e9),
                ("Mbit/s", 1e6),
                ("Tbit/s", 1e12),
                ("GB/s", 8e9),
                ("GiB/s", 8.0 * 1_073_741_824.0),
                ("MB/s", 8e6),
                ("MiB/s", 8.0 * 1_048_576.0),
            ],
            Self::Latency => &[("us", 1.0), ("ms", 1e3), ("ns", 1e-3), ("s", 1e6)],
            Self::Lost => &[("%", 0.01)],
            Self::Retransmits | Self::Wrong => &[("", 1.0)],
        }
    }
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is not TOOL.QUANTITY<VALUE or TOOL.QUANTITY>VALUE, such as nccl.busbw<80GiB/s")
        };
        let (left, is_at_least, right) = if let Some((left, right)) = text.split_once('<') {
            (left, true, right)
        } else {
            let (left, right) = text.split_once('>').ok_or_else(wrong)?;
            (left, false, right)
        };
        if right.starts_with('=') {
            return Err(wrong());
        }
        let (tool, field) = left.trim().split_once('.').ok_or_else(wrong)?;
        let is_known = TOOLS.iter().any(|(name, _)| *name == tool)
            || ["ib_", "osu_"].iter().any(|begin| tool.starts_with(begin))
            || tool == "iperf3";
        if !is_known {
            return Err(format!(
                "'{tool}' is no tool: perftest, iperf, nccl, pytorch, qperf, osu, ucx, fabtests, or a program such as ib_write_bw"
            ));
        }
        let (field, size) = match field.split_once('@') {
            Some((field, size)) => {
                let size = size
                    .parse()
                    .map_err(|_| format!("'{size}' is no size in bytes"))?;
                (field, Some(size))
            }
            None => (field, None),
        };
        let field = Field::named(field).ok_or_else(|| {
            format!("'{field}' is no quantity: goodput, algbw, busbw, latency, retransmits, lost or wrong")
        })?;
        let right = right.trim();
        let end = right
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(right.len());
        let (number, unit) = right.split_at(end);
        let units = field.units();
        let unit = units.iter().find(|(name, _)| *name == unit.trim());
        let number = number.parse::<f64>().ok().filter(|number| number.is_finite());
        let (Some(number), Some(unit)) = (number, unit) else {
            let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            return Err(if names.is_empty() {
                format!("'{right}' is no number")
            } else {
                format!("'{right}' is no number with one of the units {names}")
            });
        };
        Ok(Self {
            text: text.to_owned(),
            tool: tool.to_owned(),
            field,
            size,
            is_at_least,
            bound: number * unit.1,
            unit: *unit,
        })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl Expectation {
    /// A value of the quantity in the unit of the bound, and that unit: `GiB/s` of `nccl.busbw<80GiB/s`.
    pub fn in_unit(&self, value: f64) -> (f64, &'static str) {
        (value / self.unit.1, self.unit.0)
    }

    /// Compares the measurements with the bound. Of rates the highest one counts and of latencies the lowest one, because small and large messages
    /// are measured together; of what should not happen, the highest one.
    pub fn outcome<'a>(&self, measurements: impl IntoIterator<Item = &'a Measurement>) -> Outcome {
        let has_tool = |row: &&Measurement| {
            let group = TOOLS.iter().find(|(name, _)| *name == self.tool);
            group.map_or(row.tool == self.tool, |(_, begins)| {
                begins.iter().any(|begin| row.tool.starts_with(begin))
            })
        };
        let values = measurements
            .into_iter()
            .filter(has_tool)
            .filter(|row| self.size.is_none_or(|size| row.size_bytes == Some(size)))
            .filter_map(|row| self.field.value(row));
        let best = if self.field == Field::Latency {
            values.reduce(f64::min)
        } else {
            values.reduce(f64::max)
        };
        match best {
            None => Outcome::NotMeasured,
            Some(value) if self.is_at_least && value >= self.bound => Outcome::Holds(value),
            Some(value) if !self.is_at_least && value <= self.bound => Outcome::Holds(value),
            Some(value) => Outcome::Fails(value),
        }
    }
}
