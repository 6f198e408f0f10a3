//! Estimates as tables for people.

use std::fmt::Write as _;

use roce_model::Period;
use roce_sflow::{AgentSummary, Estimate, Estimates, Place, SampleSummary, ShareEstimate, TalkerShare};
use roce_spelling::{count, percent, plural, rate_of, short_count, whole};

use super::document::place_name;
use crate::output::columns::{Column, lay};

/// Limits of what samples say.
const LIMITS: &str = "Samples show shares: never a loss, a retransmission, the order of packets or the time of one message. A range holds 19 times of \
                      20, if packets are chosen at random. Switches are not added up, because each samples a packet that passes it.";

/// Everything, in lines of `width` columns.
pub(super) fn summary(summary: &SampleSummary, top: usize, width: usize) -> String {
    let mut text = String::new();
    let seconds = summary.period.map_or(0.0, |period| period.length().seconds());
    let agents = u64::try_from(summary.agents.len()).unwrap_or(u64::MAX);
    let _ = writeln!(
        text,
        " sFlow 5: {} of {} in {seconds:.1} s",
        plural(summary.datagrams, "datagram", "datagrams"),
        plural(agents, "agent", "agents")
    );
    if summary.left_out > 0 {
        let left_out = plural(summary.left_out, "datagram", "datagrams");
        wrapped(
            &format!("{left_out} of further agents are left out"),
            width,
            &mut text,
        );
    }
    let mut listed: Vec<&AgentSummary> = summary.agents.iter().collect();
    listed.sort_by(|one, other| least_marked(other).total_cmp(&least_marked(one)));
    if listed.len() > 1 {
        let all = listed.iter().filter_map(|agent| {
            let (_, all) = agent.places.first()?;
            Some((agent.key.to_string(), all))
        });
        let (names, estimates): (Vec<_>, Vec<_>) = all.unzip();
        let _ = writeln!(text, "\n agents, the most marked for sure first");
        text.push_str(&lay(columns("agent", names, &estimates, summary.period), width));
    }
    for agent in listed.iter().take(top) {
        self::agent(agent, summary.period, top, width, &mut text);
    }
    if listed.len() > top {
        let _ = writeln!(
            text,
            "\n and {} more agents in detail (--top)",
            listed.len() - top
        );
    }
    if !summary.talkers.is_empty() {
        let title = if agents > 1 {
            "pairs of hosts, each by the agent that saw most of it"
        } else {
            "pairs of hosts"
        };
        let _ = writeln!(text, "\n {title}");
        text.push_str(&lay(talkers(summary, agents > 1), width));
    }
    text.push('\n');
    wrapped(LIMITS, width, &mut text);
    text
}

fn wrapped(line: &str, width: usize, text: &mut String) {
    let options = textwrap::Options::new(width.max(20))
        .initial_indent(" ")
        .subsequent_indent(" ");
    for line in textwrap::wrap(line, options) {
        let _ = writeln!(text, "{line}");
    }
}

/// Share of marks that an agent has at least.
fn least_marked(agent: &AgentSummary) -> f64 {
    let all = agent.places.first().and_then(|(_, all)| all.marked.share);
    all.map_or(0.0, |share| share.low)
}

fn agent(agent: &AgentSummary, period: Option<Period>, top: usize, width: usize, text: &mut String) {
    let samples = agent.places.first().map_or(0, |(_, all)| all.samples);
    let counts = &agent.counts;
    let rate = match (counts.lowest_rate, counts.highest_rate) {
        (0, _) => String::new(),
        (one, other) if one == other => format!(" of 1 in {}", count(one.into())),
        (one, other) => format!(" of 1 in {} to {}", count(one.into()), count(other.into())),
    };
    let _ = writeln!(
        text,
        "\n agent {}: {}{rate}",
        agent.key,
        plural(samples, "sample", "samples")
    );
    for line in notes(agent) {
        wrapped(&line, width, text);
    }
    let mut places: Vec<&(Place, Estimates)> = agent.places.iter().collect();
    // All first, then the busiest of each direction.
    places.sort_by_key(|(place, found)| {
        let direction = match place {
            Place::All => 0,
            Place::Input(_) => 1,
            Place::Output(_) => 2,
        };
        (direction, std::cmp::Reverse(found.samples))
    });
    let inputs = places
        .iter()
        .filter(|(place, _)| matches!(place, Place::Input(_)));
    let inputs = inputs.count();
    let outputs = places.len().saturating_sub(inputs + 1);
    let (mut shown_inputs, mut shown_outputs) = (0, 0);
    places.retain(|(place, _)| {
        let shown = match place {
            Place::All => return true,
            Place::Input(_) => &mut shown_inputs,
            Place::Output(_) => &mut shown_outputs,
        };
        *shown += 1;
        *shown <= top
    });
    if !places.is_empty() {
        text.push_str(&lay(interfaces(&places, period), width));
        let left_out = inputs.saturating_sub(top) + outputs.saturating_sub(top);
        more(left_out, ["more interface", "more interfaces"], text);
    }
    if !agent.opcodes.is_empty() {
        let shown = agent.opcodes.get(..top).unwrap_or(&agent.opcodes);
        let column = |title, is_right, rank, cell: &dyn Fn(&roce_sflow::OpcodeShare) -> String| {
            Column::new(title, is_right, rank, shown.iter().map(cell).collect())
        };
        text.push('\n');
        let columns = vec![
            column("opcode", false, 0, &|found| found.opcode.to_string()),
            column("samples", true, 1, &|found| count(found.share.samples)),
            column("% of RoCE packets", true, 0, &|found| shares(&found.share)),
        ];
        text.push_str(&lay(columns, width));
        let left_out = agent.opcodes.len() - shown.len();
        more(left_out, ["more opcode", "more opcodes"], text);
    }
}

/// A line that counts what a table leaves out, if it does.
fn more(left_out: usize, [one, several]: [&str; 2], text: &mut String) {
    if left_out > 0 {
        let left_out = plural(left_out.try_into().unwrap_or(u64::MAX), one, several);
        let _ = writeln!(text, " and {left_out} (--top)");
    }
}

/// Lines about the samples themselves.
fn notes(agent: &AgentSummary) -> Vec<String> {
    let counts = &agent.counts;
    let mut notes = Vec::new();
    let mut note = |value: u64, text: &dyn Fn() -> String| {
        if value > 0 {
            notes.push(text());
        }
    };
    let share = |part: u64, rest: u64| percent(part, part + rest).unwrap_or_default();
    let samples = agent.places.first().map_or(0, |(_, all)| all.samples);
    note(counts.lost_datagrams, &|| {
        let lost = plural(counts.lost_datagrams, "datagram", "datagrams");
        let share = share(counts.lost_datagrams, counts.datagrams);
        format!("{lost} ({share}) did not arrive, by their numbers")
    });
    note(counts.missing_samples, &|| {
        let missing = plural(counts.missing_samples, "sample", "samples");
        let share = share(counts.missing_samples, samples);
        format!("{missing} ({share}) did not arrive, by their numbers")
    });
    note(counts.dropped_samples, &|| {
        let dropped = plural(counts.dropped_samples, "sample", "samples");
        let share = share(counts.dropped_samples, samples);
        format!("{dropped} ({share}) could not be made by the switch: load may be hidden where it is highest")
    });
    note(counts.rate_changes, &|| {
        let changes = plural(counts.rate_changes, "time", "times");
        format!("the sampling rate changed {changes}: each sample counts by its own")
    });
    note(u64::from(agent.has_both_directions), &|| {
        "packets are sampled as they come and as they go: 'all' and 'in' have the former, 'out' the latter"
            .to_owned()
    });
    note(counts.sources_without_pool, &|| {
        format!(
            "the switch's count of packets (sample_pool) does not fit the samples of {} of {}: their totals are by the sampling rate",
            count(counts.sources_without_pool),
            plural(counts.sources, "source", "sources")
        )
    });
    note(counts.copies, &|| {
        let copies = plural(counts.copies, "datagram was", "datagrams were");
        format!("{copies} here already: each counts once")
    });
    note(counts.restarts, &|| {
        format!(
            "the agent began to count anew {}",
            plural(counts.restarts, "time", "times")
        )
    });
    note(counts.without_header, &|| {
        let samples = plural(counts.without_header, "sample", "samples");
        format!("{samples} without a header that is known: of the totals alone, or of nothing")
    });
    note(counts.discarded, &|| {
        let notes = plural(counts.discarded, "note", "notes");
        format!("{notes} of discarded packets, which are not read")
    });
    note(counts.left_out, &|| {
        let samples = plural(counts.left_out, "sample", "samples");
        format!("{samples} left out: too many sources or ways through the agents")
    });
    notes
}

fn interfaces(places: &[&(Place, Estimates)], period: Option<Period>) -> Vec<Column> {
    let names = places.iter().map(|(place, _)| match place_name(*place) {
        (_, None) => "all".to_owned(),
        ("input", Some(name)) => format!("in {name}"),
        (_, Some(name)) => format!("out {name}"),
    });
    let estimates: Vec<&Estimates> = places.iter().map(|(_, found)| found).collect();
    columns("interface", names.collect(), &estimates, period)
}

/// Columns of estimates, behind one of their names.
fn columns(
    title: &'static str,
    names: Vec<String>,
    estimates: &[&Estimates],
    period: Option<Period>,
) -> Vec<Column> {
    let column = |title, is_right, rank, cell: &dyn Fn(&Estimates) -> String| {
        let cells = estimates.iter().map(|found| cell(found));
        Column::new(title, is_right, rank, cells.collect())
    };
    vec![
        Column::new(title, false, 0, names),
        column("samples", true, 3, &|found| count(found.samples)),
        column("packets", true, 0, &|found| total(found.packets, &short_whole)),
        column("rate", true, 1, &|found| {
            let seconds = period.map_or(0.0, |period| period.length().seconds());
            if seconds > 0.0 {
                total(found.bytes, &|bytes| rate_of(bytes * 8.0 / seconds))
            } else {
                "-".to_owned()
            }
        }),
        column("CE % of data", true, 0, &|found| shares(&found.marked)),
        column("CNP % of RoCE", true, 0, &|found| shares(&found.cnps)),
        column("RoCE %", true, 2, &|found| shares(&found.roce)),
        column("Not-ECT % of data", true, 4, &|found| shares(&found.not_capable)),
        column("UET %", true, 5, &|found| shares(&found.uet)),
    ]
}

fn talkers(summary: &SampleSummary, has_agents: bool) -> Vec<Column> {
    let column = |title, is_right, rank, cell: &dyn Fn(&TalkerShare) -> String| {
        let cells = summary.talkers.iter().map(cell);
        Column::new(title, is_right, rank, cells.collect())
    };
    let seconds = summary.period.map_or(0.0, |period| period.length().seconds());
    let mut columns = vec![
        column("from", false, 0, &|found| found.source.to_string()),
        column("to", false, 0, &|found| found.destination.to_string()),
        column("samples", true, 2, &|found| count(found.share.samples)),
        column("packets", true, 0, &|found| total(found.packets, &short_whole)),
        column("rate", true, 1, &|found| match found.bytes {
            Some(bytes) if seconds > 0.0 => rate_of(bytes * 8.0 / seconds),
            _ => "-".to_owned(),
        }),
        column("% of RoCE packets", true, 0, &|found| shares(&found.share)),
    ];
    if has_agents {
        let agents = &summary.agents;
        columns.push(column("agent", false, 3, &|found| {
            agents
                .get(found.agent)
                .map_or_else(String::new, |agent| agent.key.to_string())
        }));
    }
    columns
}

/// A computed count in few columns.
fn short_whole(value: f64) -> String {
    if value < 1e6 {
        whole(value)
    } else {
        short_count(roce_model::cast::whole(value))
    }
}

/// A total, and by how much of it it may be wrong.
fn total(found: Estimate, spelled: &dyn Fn(f64) -> String) -> String {
    if found.value > 0.0 {
        let error = (found.high - found.value) / found.value * 100.0;
        let error = match error {
            error if error < 0.05 => "<0.1".to_owned(),
            error if error < 10.0 => format!("{error:.1}"),
            error => format!("{error:.0}"),
        };
        format!("{} ±{error} %", spelled(found.value))
    } else {
        spelled(found.value)
    }
}

/// A share in per cent, and its range.
fn shares(found: &ShareEstimate) -> String {
    match found.share {
        None => "-".to_owned(),
        Some(share) => {
            let [value, low, high] = [share.value, share.low, share.high].map(per_cent);
            format!("{value} ({low} to {high})")
        }
    }
}

/// A share in per cent without its sign. Only exact values are shown as nothing or everything.
fn per_cent(share: f64) -> String {
    let value = share * 100.0;
    if share <= 0.0 {
        "0".to_owned()
    } else if share >= 1.0 {
        "100".to_owned()
    } else if value < 0.01 {
        "<0.01".to_owned()
    } else if value < 10.0 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        ">99.9".to_owned()
    }
}
