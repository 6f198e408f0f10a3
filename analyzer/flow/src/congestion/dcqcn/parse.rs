//! DCQCN's parameters from text and to it. What they mean is said where they are declared.

use roce_model::Span;
use std::fmt;
use std::str::FromStr;

use crate::congestion::dcqcn::Parameters;

/// Why a text names no parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// There is no such set and no such parameter.
    #[error("'{0}' is not a DCQCN parameter\nhint: {KNOWN}")]
    Unknown(String),
    /// The value cannot be read.
    #[error("'{value}' is no value for the DCQCN parameter '{key}': {expected}")]
    Value {
        /// The parameter.
        key: String,
        /// The given value.
        value: String,
        /// Values that are allowed.
        expected: &'static str,
    },
}

const KNOWN: &str = "paper, ns3 or nvidia, then alpha-timer, g, alpha, timer, bytes, f, rai, rhai, min-rate, \
max-cut, reduce-period, clamp as KEY=VALUE, separated by commas";

const DURATION: &str = "a time of 1us to 10s, such as 55us";
const PERIOD: &str = "a time of 0us to 10s, such as 4us";
const RATE: &str = "a rate of 1M to 10T in bit/s, such as 40M";
const BYTES: &str = "1000 to 1T bytes, such as 10M";
const SHARE: &str = "a number over 0, up to 1, such as 0.5 or 1/256";
const COUNT: &str = "a number of 1 to 1000";
const SWITCH: &str = "on or off";

impl FromStr for Parameters {
    type Err = ParametersError;

    fn from_str(text: &str) -> Result<Self, ParametersError> {
        let mut parameters = Self::default();
        for (place, part) in text.split(',').map(str::trim).enumerate() {
            let Some((key, value)) = part.split_once('=') else {
                parameters = match part {
                    "paper" if place == 0 => Self::PAPER,
                    "ns3" if place == 0 => Self::NS3,
                    "nvidia" if place == 0 => Self::NVIDIA,
                    _ => return Err(ParametersError::Unknown(part.to_owned())),
                };
                continue;
            };
            parameters.set(key.trim(), value.trim())?;
        }
        Ok(parameters)
    }
}

impl Parameters {
    fn set(&mut self, key: &str, value: &str) -> Result<(), ParametersError> {
        let wrong = |expected| ParametersError::Value {
            key: key.to_owned(),
            value: value.to_owned(),
            expected,
        };
        let time = |least, expected| {
            duration(value)
                .filter(|time| (least..=10 * Span::SECOND.0).contains(time))
                .map(Span)
                .ok_or_else(|| wrong(expected))
        };
        let rate = || {
            scaled(value)
                .filter(|rate| (1_000_000..=10_000_000_000_000).contains(rate))
                .ok_or_else(|| wrong(RATE))
        };
        let share = || share(value).ok_or_else(|| wrong(SHARE));
        match key {
            "alpha-timer" => self.alpha_timer = time(1_000, DURATION)?,
            "timer" => self.timer = time(1_000, DURATION)?,
            "reduce-period" => self.reduce_period = time(0, PERIOD)?,
            "g" => self.g = share()?,
            "alpha" => self.initial_alpha = share()?,
            "max-cut" => self.max_cut = share()?,
            "rai" => self.additive = rate()?,
            "rhai" => self.hyper = rate()?,
            "min-rate" => self.min_rate = rate()?,
            "bytes" => {
                self.bytes = scaled(value)
                    .filter(|bytes| (1_000..=1_000_000_000_000).contains(bytes))
                    .ok_or_else(|| wrong(BYTES))?;
            }
            "f" => {
                let stages = value.parse().ok().filter(|stages| (1..=1_000).contains(stages));
                self.stages = stages.ok_or_else(|| wrong(COUNT))?;
            }
            "clamp" => {
                self.clamp_target = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(wrong(SWITCH)),
                };
            }
            _ => return Err(ParametersError::Unknown(key.to_owned())),
        }
        Ok(())
    }
}

/// A whole number and ns, us, ms or s.
fn duration(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => Span::SECOND.0,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Reads a whole number with K for thousands, M for millions and so on.
fn scaled(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "" => 1,
        "K" | "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// A number over 0 and up to 1, or such a fraction.
fn share(text: &str) -> Option<f64> {
    let number = match text.split_once('/') {
        Some((part, whole)) => part.trim().parse::<f64>().ok()? / whole.trim().parse::<f64>().ok()?,
        None => text.parse().ok()?,
    };
    (number > 0.0 && number <= 1.0).then_some(number)
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, set) in [
            ("paper", Self::PAPER),
            ("ns3", Self::NS3),
            ("nvidia", Self::NVIDIA),
        ] {
            if *self == set {
                return f.write_str(name);
            }
        }
        write!(
            f,
            "alpha-timer={}ns,g={},alpha={},timer={}ns,bytes={},f={},rai={},rhai={},min-rate={},max-cut={},\
             reduce-period={}ns,clamp={}",
            self.alpha_timer.0,
            self.g,
            self.initial_alpha,
            self.timer.0,
            self.bytes,
            self.stages,
            self.additive,
            self.hyper,
            self.min_rate,
            self.max_cut,
            self.reduce_period.0,
            if self.clamp_target { "on" } else { "off" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Parameters, String> {
        text.parse().map_err(|error: ParametersError| error.to_string())
    }

    #[test]
    fn sets_and_changes_to_them() {
        assert_eq!(parse("paper"), Ok(Parameters::PAPER));
        assert_eq!(parse("ns3"), Ok(Parameters::NS3));
        let changed = parse("nvidia, timer=55us, rai=40M, g=1/256, clamp=on, f=5, bytes=10M").unwrap();
        assert_eq!(
            changed,
            Parameters {
                timer: Span(55_000),
                additive: 40_000_000,
                g: 0.003_906_25,
                clamp_target: true,
                stages: 5,
                bytes: 10_000_000,
                ..Parameters::NVIDIA
            }
        );
        assert_eq!(
            parse("max-cut=0.25").unwrap(),
            Parameters {
                max_cut: 0.25,
                ..Parameters::PAPER
            }
        );
        for parameters in [Parameters::PAPER, Parameters::NVIDIA, changed] {
            assert_eq!(parse(&parameters.to_string()), Ok(parameters));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(
            parse("fast")
                .unwrap_err()
                .starts_with("'fast' is not a DCQCN parameter")
        );
        assert!(parse("timer=1us,paper").unwrap_err().starts_with("'paper' is no"));
        assert!(parse("speed=1").unwrap_err().starts_with("'speed' is no"));
        let error = "'0ns' is no value for the DCQCN parameter 'timer': a time of 1us to 10s, such as 55us";
        assert_eq!(parse("timer=0ns").unwrap_err(), error);
        for wrong in [
            "",
            "timer=55",
            "timer=us",
            "g=0",
            "g=nan",
            "g=2",
            "g=1/0",
            "alpha=",
            "rai=1",
            "rai=40m",
            "bytes=1",
            "f=0",
            "clamp=1",
            "min-rate=99999999999999999999T",
            "timer=99999999999999999999s",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
