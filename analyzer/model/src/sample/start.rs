//! When a system started, by what one reading says, and whether it restarted between two readings.

use super::counter::Counter;
use super::reading::Sample;

/// Seconds by which a start's time may differ from itself: clocks are set, and `btime` is rounded.
const CLOCK_STEP: f64 = 60.0;

/// Start of a system, as far as one reading says it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SystemStart {
    /// Seconds since the start.
    pub uptime: Option<f64>,
    /// The kernel's random number of this start (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: Option<u128>,
    /// Time of the start in seconds since 1970, by the system's own clock (`btime` of `/proc/stat`).
    pub boot_time: Option<f64>,
}

impl SystemStart {
    /// The start by the texts of `/proc/uptime`, `/proc/sys/kernel/random/boot_id` and `/proc/stat`; a text that is absent is empty.
    pub fn from_texts(uptime: &str, boot_id: &str, stat: &str) -> Self {
        let seconds = |text: &str| {
            let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
            Some(seconds).filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
        };
        let digits: String = boot_id.trim().chars().filter(|glyph| *glyph != '-').collect();
        let boot_time = stat.lines().find_map(|line| line.strip_prefix("btime "));
        Self {
            uptime: seconds(uptime),
            boot_id: u128::from_str_radix(&digits, 16).ok(),
            boot_time: boot_time.and_then(seconds),
        }
    }

    /// The start by a switch's samples.
    pub fn from_samples(samples: &[Sample]) -> Self {
        let uptime = samples
            .iter()
            .find(|sample| sample.counter == Counter::SwitchUptime);
        Self {
            uptime: uptime.map(|sample| sample.value),
            ..Self::default()
        }
    }

    /// True if the system restarted between `before` and this reading. What neither says is no restart.
    pub fn is_restart_of(self, before: Self) -> bool {
        if let Some((now, before)) = self.boot_id.zip(before.boot_id) {
            return now != before;
        }
        let is_shorter = self
            .uptime
            .zip(before.uptime)
            .is_some_and(|(now, before)| now < before);
        let is_later = self
            .boot_time
            .zip(before.boot_time)
            .is_some_and(|(now, before)| now - before > CLOCK_STEP);
        is_shorter || is_later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(uptime: &str, boot_id: &str, stat: &str) -> SystemStart {
        SystemStart::from_texts(uptime, boot_id, stat)
    }

    #[test]
    fn a_restart_is_another_boot_id_a_shorter_uptime_or_a_later_boot_time() {
        let ids = [
            "6f1c2a34-0000-4000-8000-00000000000a\n",
            "6f1c2a34-0000-4000-8000-00000000000b\n",
        ];
        // The second start is longer ago than the first reading saw of the first one.
        let (one, other) = (start("60.00 1.00", ids[0], ""), start("900.00 1.00", ids[1], ""));
        assert!(other.is_restart_of(one));
        assert!(!start("900.00 1.00", ids[0], "").is_restart_of(one));
        assert!(start("59.99 1.00", "", "").is_restart_of(start("60.00 1.00", "", "")));
        let stat = |time: u64| start("", "", &format!("cpu  1 2 3\nbtime {time}\nprocesses 5\n"));
        assert!(stat(1_700_003_600).is_restart_of(stat(1_700_000_000)));
        // The clock was set by two seconds.
        assert!(!stat(1_700_000_002).is_restart_of(stat(1_700_000_000)));
        assert!(!start("", "", "").is_restart_of(start("60.00 1.00", ids[0], "btime 5\n")));
        assert_eq!(start("inf", "no", "btime x\n"), SystemStart::default());
    }
}
