//! The transformations: each makes a copy of an input, and says what has to hold for it.

#![expect(
    clippy::unnecessary_wraps,
    reason = "the functions of all transformations have one type: some are not possible of every input"
)]

mod around;
mod beside;
mod format;
mod holes;
mod names;
mod options;
mod parts;
mod time;

use crate::compare::{Numbers, Relation};
use crate::draw::Draw;
use crate::input::Input;
use crate::transformation::{InputCopy, Transformation};

impl Transformation {
    /// The transformation of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TRANSFORMATIONS
            .iter()
            .find(|transformation| transformation.name == name)
    }
}

type Make = fn(&Input, &mut Draw) -> Option<InputCopy>;

const fn line(name: &'static str, about: &'static str, relation: Relation, make: Make) -> Transformation {
    Transformation {
        name,
        about,
        relation,
        make,
    }
}

/// Everything is the same, and it is one tap.
const WHOLE: Relation = Relation::Same(Numbers::Whole);
/// As `WHOLE`, in longer frames.
const FRAMES: Relation = Relation::Same(Numbers::Frames);
/// Everything is the same.
const SAME: Relation = Relation::Same(Numbers::All { nanos: 0.0 });
/// As `SAME`, where stamps lose what is below a microsecond.
const SAME_TO_US: Relation = Relation::Same(Numbers::All { nanos: 4_000.0 });
const SAME_VERDICTS: Relation = Relation::Same(Numbers::None);
/// Equal answers, but for counts of all traffic.
const SAME_COUNTS: Relation = Relation::Same(Numbers::Counts);
const TWICE: Relation = Relation::Same(Numbers::Twice);
/// Headers or payload are missing, no packet is.
const WEAKER: Relation = Relation::Weaker { never_high: false };
/// Packets are missing.
const HOLES: Relation = Relation::Weaker { never_high: true };

/// All transformations.
pub const TRANSFORMATIONS: &[Transformation] = &[
    line(
        "pcapng",
        "pcap written as pcapng, and pcapng as pcap with nanoseconds",
        WHOLE,
        format::other_container,
    ),
    line("big-endian", "the other byte order", WHOLE, format::big_endian),
    line(
        "stamps-us",
        "stamps cut to microseconds",
        SAME_TO_US,
        format::microseconds,
    ),
    line("stamps-ns", "a file with nanoseconds", SAME, format::nanoseconds),
    line("gzip", "the file compressed", WHOLE, format::gzip),
    line("zstd", "the file compressed", WHOLE, format::zstandard),
    line("stdin", "through standard input", WHOLE, format::piped),
    line(
        "sections",
        "a pcapng file with three sections",
        WHOLE,
        format::sections,
    ),
    line(
        "rotated-2",
        "two files, the later one given first",
        WHOLE,
        parts::two_reversed,
    ),
    line(
        "rotated-7",
        "seven files in any order",
        WHOLE,
        parts::seven_in_any_order,
    ),
    line(
        "rotated-ties",
        "files that end between equal stamps, in any order",
        WHOLE,
        parts::between_equal_stamps,
    ),
    line(
        "rotated-overlap",
        "two files, some records in both",
        WHOLE,
        parts::overlapping,
    ),
    line(
        "quiet-rotated",
        "a second of silence, and another file after it",
        WHOLE,
        parts::quiet_between_files,
    ),
    line(
        "quiet-section",
        "a second of silence, and another section after it",
        WHOLE,
        parts::quiet_between_sections,
    ),
    line(
        "shifted",
        "all stamps later by a week and some",
        WHOLE,
        time::shifted,
    ),
    line(
        "shifted-back",
        "all stamps earlier by a fraction of a bin",
        WHOLE,
        time::shifted_back,
    ),
    line(
        "disorder",
        "records out of order by up to 100 us",
        WHOLE,
        time::disorder,
    ),
    line("addresses", "other addresses", WHOLE, names::addresses),
    line("qpns", "other queue pair numbers", WHOLE, names::qpns),
    line("psns", "PSNs that wrap in the middle", WHOLE, names::psns_wrap),
    line(
        "psn-zero",
        "the first packet that comes again has PSN 0",
        SAME,
        names::psn_zero,
    ),
    line("vlan", "an 802.1Q tag", FRAMES, around::vlan),
    line("qinq", "an 802.1ad and an 802.1Q tag", FRAMES, around::qinq),
    line("vxlan", "VXLAN around each packet", FRAMES, around::vxlan),
    line("gre", "GRE around each packet", FRAMES, around::gre),
    line("erspan", "ERSPAN II around each frame", FRAMES, around::erspan),
    line("in-ipv6", "IPv6 around each packet", FRAMES, around::in_ipv6),
    line(
        "healthy-beside",
        "healthy traffic of other hosts at the same time",
        SAME_COUNTS,
        beside::healthy,
    ),
    line(
        "healthy-much",
        "eight times as much of it",
        SAME_COUNTS,
        beside::healthy_often,
    ),
    line(
        "quiet-behind",
        "one foreign frame ten seconds later",
        SAME_COUNTS,
        beside::quiet,
    ),
    line(
        "healthy-behind",
        "healthy traffic ten seconds later",
        SAME_COUNTS,
        beside::healthy_behind,
    ),
    line(
        "repeated",
        "the same again ten seconds later",
        TWICE,
        beside::repeated,
    ),
    line(
        "repeated-renamed",
        "the same again ten seconds later, on other queue pairs",
        TWICE,
        beside::repeated_renamed,
    ),
    line("doubled", "each frame twice, 3 us apart", SAME, beside::doubled),
    line(
        "doubled-routed",
        "each frame twice, by a router's two ports",
        SAME,
        beside::doubled_routed,
    ),
    line(
        "same-file-twice",
        "two files with the same records",
        SAME,
        beside::same_file_twice,
    ),
    line(
        "same-path-twice",
        "one file given twice",
        SAME,
        beside::same_path_twice,
    ),
    line(
        "tap-empty",
        "a second file without records",
        SAME,
        beside::empty_tap,
    ),
    line(
        "tap-foreign",
        "a second file with one foreign frame",
        SAME_COUNTS,
        beside::foreign_tap,
    ),
    line(
        "tap-before",
        "a second file with other traffic, a second earlier",
        SAME_COUNTS,
        beside::tap_before,
    ),
    line(
        "tap-unrelated",
        "a second file with other traffic at the same time",
        SAME_COUNTS,
        beside::tap_unrelated,
    ),
    line(
        "tap-part",
        "a second tap that saw the first two fifths",
        SAME_VERDICTS,
        beside::tap_part,
    ),
    line(
        "tap-overlap",
        "the last three fifths, and a second tap that saw the first half",
        Relation::Stays,
        beside::tap_overlap,
    ),
    line(
        "arguments",
        "the files in the other order",
        SAME,
        options::reversed,
    ),
    line("bin-10us", "bins of 10 us", SAME, options::bin_10us),
    line("bin-100us", "bins of 100 us", SAME, options::bin_100us),
    line("bin-1ms", "bins of 1 ms", SAME, options::bin_1ms),
    line("bin-10ms", "bins of 10 ms", SAME, options::bin_10ms),
    line("bin-100ms", "bins of 100 ms", SAME, options::bin_100ms),
    line("threads-2", "two threads", WHOLE, options::threads_2),
    line("threads-4", "four threads", WHOLE, options::threads_4),
    line("snaplen-60", "frames cut to 60 bytes", WEAKER, holes::snaplen_60),
    line("snaplen-96", "frames cut to 96 bytes", WEAKER, holes::snaplen_96),
    line(
        "one-way-up",
        "only packets to the higher address",
        HOLES,
        holes::only_up,
    ),
    line(
        "one-way-down",
        "only packets to the lower address",
        HOLES,
        holes::only_down,
    ),
    line("no-answers", "without ACKs and NAKs", HOLES, holes::no_answers),
    line(
        "thinned-1-percent",
        "one record in a hundred missing, at random",
        HOLES,
        holes::one_percent,
    ),
    line(
        "thinned-half",
        "every second record missing, at random",
        HOLES,
        holes::half,
    ),
    line("kept-1-in-10", "every tenth record", HOLES, holes::every_tenth),
    line(
        "kept-1-in-10-random",
        "one record in ten, at random",
        HOLES,
        holes::tenth,
    ),
    line(
        "bursts",
        "runs of records missing, a tenth in all",
        HOLES,
        holes::bursts,
    ),
    line(
        "sampled-every-10",
        "every tenth record, declared",
        HOLES,
        holes::every_tenth_declared,
    ),
    line(
        "sampled-10",
        "one record in ten at random, declared",
        HOLES,
        holes::tenth_declared,
    ),
    line(
        "ends",
        "first and last packets, answers and CNPs",
        HOLES,
        holes::ends,
    ),
    line(
        "sampled-ends",
        "first and last packets, answers and CNPs, declared",
        HOLES,
        holes::ends_declared,
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct() {
        let names: BTreeSet<_> = TRANSFORMATIONS
            .iter()
            .map(|transformation| transformation.name)
            .collect();
        assert_eq!(names.len(), TRANSFORMATIONS.len());
        assert!(Transformation::named("psn-zero").is_some() && Transformation::named("no such").is_none());
    }
}
