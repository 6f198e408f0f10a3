//! Properties of a file besides its frames: format, times, losses, and the place of a cut.
//!
//! Leaves filling it in to the walkers and the reader.

use std::fmt;

use roce_model::Time;

use crate::sorter::SortCounts;

/// Layout of the records in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// pcap with microseconds.
    Pcap,
    /// pcap with nanoseconds.
    PcapNanos,
    /// pcap with the longer record headers of patched Linux libpcaps (Kuznetzov's), with microseconds.
    PcapModified,
    /// pcapng.
    Pcapng,
}

/// Compression of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, any number of members.
    Gzip,
    /// Zstandard, any number of frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// Format of a file, from its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Layout of the records.
    pub container: Container,
    /// Compression of the file.
    pub compression: Option<Compression>,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.container {
            Container::Pcap => "pcap, us",
            Container::PcapNanos => "pcap, ns",
            Container::PcapModified => "pcap modified, us",
            Container::Pcapng => "pcapng",
        })?;
        match self.compression {
            Some(compression) => write!(f, " in {compression}"),
            None => Ok(()),
        }
    }
}

/// Records of one file whose time goes backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Records stamped earlier than the one directly before them.
    pub records: u64,
    /// The largest such step back, in nanoseconds.
    pub max_back_ns: u64,
}

/// A file that ends inside a record: everything before that record was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Start of the incomplete record (or file header), in bytes of the (decompressed) file.
    pub offset: u64,
    /// Bytes that it needs; where not even its header is whole, those of the header.
    pub needed: u64,
    /// Bytes that there are of it.
    pub had: u64,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, needed, had } = self;
        write!(
            f,
            "the last record, at byte {offset}, is cut off: it needs {needed} bytes and has {had}"
        )
    }
}

/// Progress of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read of the file as it is stored (compressed ones, when it is compressed).
    pub bytes: u64,
    /// Its size in bytes when it was opened, if it is a plain file.
    pub total: Option<u64>,
}

/// Counts and properties of a file up to the last batch read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its format.
    pub format: Format,
    /// Frames delivered.
    pub frames: u64,
    /// The earliest time stamp.
    pub first_time: Option<Time>,
    /// The latest time stamp.
    pub last_time: Option<Time>,
    /// Frames without a time of their own (pcapng's Simple Packet Blocks); they carry the time of the record
    /// before them, 0 when there is none.
    pub untimed: u64,
    /// Records that the file says the capturing side lost, over all interfaces.
    pub lost_records: u64,
    /// Records whose time goes backwards.
    pub disorder: Disorder,
    /// Records whose time does not fit 64 bits of nanoseconds: a frame of theirs has the latest time there is.
    pub unstamped: u64,
    /// Counts of the sorter: zero where the reader is used alone.
    pub sorting: SortCounts,
    /// Set when the file ends inside a record.
    pub truncation: Option<Truncation>,
}

impl Summary {
    /// Summary of a file or stream before its first read.
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            frames: 0,
            first_time: None,
            last_time: None,
            untimed: 0,
            lost_records: 0,
            disorder: Disorder::default(),
            unstamped: 0,
            sorting: SortCounts::default(),
            truncation: None,
        }
    }
}

/// The running order of time stamps: what the walkers' inner loops keep of [`Summary`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The time of the last record; before the first one no time is in order.
    last: u64,
    /// The extremes, but for the times since the last step back, which end at `last`.
    least: Option<u64>,
    most: u64,
    disorder: Disorder,
    unstamped: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            last: u64::MAX,
            least: None,
            most: 0,
            disorder: Disorder::default(),
            unstamped: 0,
        }
    }
}

impl Times {
    /// The time of the last record, 0 before the first.
    pub(crate) fn last(&self) -> Time {
        Time(self.least.map_or(0, |_| self.last))
    }

    /// Takes the time of one more record.
    #[inline]
    pub(crate) fn note(&mut self, time: u64) {
        let in_order = time >= self.last && time != u64::MAX;
        if in_order || self.note_odd(time) {
            self.last = time;
        }
    }

    /// The first record, every one that steps back, and such whose time does not fit; whether its time counts.
    #[cold]
    fn note_odd(&mut self, time: u64) -> bool {
        if time == u64::MAX {
            self.unstamped += 1;
            return false;
        }
        if let Some(least) = &mut self.least {
            if time < self.last {
                *least = time.min(*least);
                self.most = self.most.max(self.last);
                self.disorder.records += 1;
                self.disorder.max_back_ns = self.disorder.max_back_ns.max(self.last - time);
            }
        } else {
            self.least = Some(time);
        }
        true
    }

    /// Updates a summary.
    pub(crate) fn report(&self, summary: &mut Summary) {
        summary.first_time = self.least.map(Time);
        summary.last_time = self.least.map(|_| Time(self.most.max(self.last)));
        summary.disorder = self.disorder;
        summary.unstamped = self.unstamped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_that_does_not_fit_is_counted_and_moves_nothing() {
        let mut times = Times::default();
        for time in [100, u64::MAX, 200, u64::MAX] {
            times.note(time);
        }
        let mut summary = Summary::new(Format {
            container: Container::Pcapng,
            compression: None,
        });
        times.report(&mut summary);
        assert_eq!((summary.unstamped, summary.disorder), (2, Disorder::default()));
        assert_eq!(summary.last_time, Some(Time(200)));
        assert_eq!(times.last(), Time(200));
    }

    #[test]
    fn a_step_back_of_centuries_is_counted() {
        // A find of the fuzz target `pcapng`: the difference is more than 2^64 - 2^62.
        let mut times = Times::default();
        for time in [1_794_000_000_000_000_000, u64::MAX - 1, 1_794_000_000_000_000_001] {
            times.note(time);
        }
        let mut summary = Summary::new(Format {
            container: Container::Pcapng,
            compression: None,
        });
        times.report(&mut summary);
        assert_eq!(summary.disorder.records, 1);
        assert_eq!(summary.last_time, Some(Time(u64::MAX - 1)));
    }

    #[test]
    fn steps_back_are_counted_against_the_record_before() {
        let mut times = Times::default();
        for time in [100, 300, 250, 260, 50, 60] {
            times.note(time);
        }
        let mut summary = Summary::new(Format {
            container: Container::Pcap,
            compression: Some(Compression::Gzip),
        });
        times.report(&mut summary);
        // 300 -> 250 (50) and 260 -> 50 (210).
        assert_eq!(
            summary.disorder,
            Disorder {
                records: 2,
                max_back_ns: 210
            }
        );
        assert_eq!(
            (summary.first_time, summary.last_time),
            (Some(Time(50)), Some(Time(300)))
        );
        assert_eq!(summary.format.to_string(), "pcap, us in gzip");
    }
}
