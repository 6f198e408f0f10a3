//! Limits of a live run that another program sets: its start, its end with that program, its size, and the frames that it takes.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use roce_capture::live::Stop;
use roce_model::{Span, Time};
use roce_pipeline::time_of_day;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::options::duration::{Moment, parse_duration};
use crate::options::size::parse_size;

/// A start that is further ahead is a mistake.
const MAX_WAIT: Duration = Duration::from_hours(24);
/// Silence of standard input that ends no run.
const NEVER: &str = "never";
/// Period of looking at standard input before the start.
const LOOK: Duration = Duration::from_millis(20);

// Limits of a run. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(super) struct Bounds {
    /// Start at this time: seconds since 1970, such as 1795000000.5, or 2026-11-21T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_at)]
    from: Option<Time>,

    /// End the run when standard input ends, so that it ends with the program that started it; with =TIME also after this time without a byte
    #[arg(long, value_name = "TIME", value_parser = parse_silence)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = NEVER)]
    until_stdin_closes: Option<Span>,

    /// End the run when FILE, or the recording, has this size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,

    /// Take only frames that pass a filter of libpcap (pcap-filter(7)), such as 'udp port 4791'
    #[arg(long, value_name = "EXPRESSION")]
    pub(super) filter: Option<String>,
}

/// Seconds since 1970, or a time of day with its date.
fn parse_at(text: &str) -> Result<Time, String> {
    let wrong = || format!("'{text}' is neither seconds since 1970 nor a time such as 2026-11-21T10:00:00Z");
    match parse_seconds(text.trim()) {
        Some(time) => Ok(time),
        None => match Moment::parse(text) {
            Ok(Moment::At(time)) => Ok(time),
            _ => Err(wrong()),
        },
    }
}

/// Decimal seconds with at most nine digits of a fraction; further digits are below a nanosecond.
fn parse_seconds(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let seconds: u64 = whole.parse().ok()?;
    let nanos: u64 = digits.parse().ok()?;
    seconds.checked_mul(Span::SECOND.0)?.checked_add(nanos).map(Time)
}

fn parse_silence(text: &str) -> Result<Span, String> {
    if text == NEVER {
        return Ok(Span(u64::MAX));
    }
    let time = parse_duration(text)?;
    if time.0 < Span::SECOND.0 {
        return Err("1s is the least".to_owned());
    }
    Ok(time)
}

impl Bounds {
    /// Size at which the run ends.
    pub(super) fn max_size(&self) -> Option<u64> {
        self.max_size
    }

    /// Waits for the start.
    ///
    /// # Errors
    /// The start is too far ahead, or standard input ends before it.
    pub(super) fn wait(&self) -> anyhow::Result<()> {
        let Some(at) = self.from else { return Ok(()) };
        let left = || Duration::from_nanos(at.since(time_of_day()).0);
        if left() > MAX_WAIT {
            bail!(
                "--from is {} hours ahead: a run waits for at most 24\nhint: this host's clock may be wrong",
                left().as_secs() / 3600
            );
        }
        let mut input = self.until_stdin_closes.map(Input::new);
        while !left().is_zero() {
            let next = left().min(LOOK);
            let Some(input) = &mut input else {
                std::thread::sleep(next);
                continue;
            };
            if input.ends_within(next) {
                bail!("standard input ended before the start");
            }
        }
        Ok(())
    }

    /// The switch that requests the run's end, which standard input requests, too, if that is wanted.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn followed(&self, end: Stop) -> anyhow::Result<Stop> {
        let Some(silence) = self.until_stdin_closes else {
            return Ok(end);
        };
        let switch = end.clone();
        // It ends with the process: a read of standard input waits for as long as the other side does.
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || {
                let mut input = Input::new(silence);
                while !input.ends_within(Duration::from_secs(1)) {}
                switch.stop();
            })
            .context("no thread for standard input")?;
        Ok(end)
    }
}

/// Standard input, whose bytes mean nothing but that the other side is there.
struct Input {
    silence: Duration,
    last: Instant,
}

impl Input {
    fn new(silence: Span) -> Self {
        Self {
            silence: Duration::from_nanos(silence.0),
            last: Instant::now(),
        }
    }

    /// True if it ends within this time: it is closed, or silent for too long.
    fn ends_within(&mut self, time: Duration) -> bool {
        let stdin = std::io::stdin();
        let patience = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let mut waited = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waited, Some(&patience)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => match rustix::io::read(&stdin, &mut [0; 256]) {
                Ok(0) => return true,
                Ok(_) => self.last = Instant::now(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return true,
            },
            Err(_) => return true,
        }
        self.last.elapsed() > self.silence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_seconds_or_times_of_day() {
        // 2001-09-09T01:46:40Z is 10^9 seconds after 1970.
        for (text, ns) in [
            ("1000000000", 1_000_000_000_000_000_000),
            ("1000000000.5", 1_000_000_000_500_000_000),
            ("1000000000.000000001234", 1_000_000_000_000_000_001),
            ("2001-09-09T01:46:40Z", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(parse_at(text), Ok(Time(ns)), "{text}");
        }
        for wrong in ["", ".5", "+1s", "soon", "1.-5", "99999999999999999999"] {
            assert!(parse_at(wrong).is_err(), "{wrong}");
        }
    }
}
