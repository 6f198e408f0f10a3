//! Outcomes of checks for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use roce_hosts::doctor::{Host, Judgement, Outcome, RecommendedAddress, Status};
use roce_model::text::clean;

use super::examined::ExaminedHost;
use crate::output::style::style;

/// Limits of the width that text is laid out for, in columns.
const NARROWEST: usize = 40;
const WIDEST: usize = 120;
/// Columns before a summary's further lines.
const INDENT: &str = "            ";
/// Words in a command that are to be filled in.
const PLACEHOLDERS: [&str; 9] = [
    "ADDRESS",
    "ADDRESS/PREFIX",
    "IMAGE",
    "GUID",
    "NUMBER",
    "INTERFACE",
    "DEVICE",
    "NAME",
    "COMMAND",
];

struct Layout {
    width: usize,
    unicode: bool,
}

impl Layout {
    fn new() -> Self {
        let style = style(0);
        Self {
            width: style.width.clamp(NARROWEST, WIDEST),
            unicode: style.unicode,
        }
    }

    fn mark(&self, status: Status) -> &'static str {
        let (unicode, plain) = match status {
            Status::Critical => ("✗", "x"),
            Status::Warning => ("▲", "!"),
            Status::Info => ("•", "."),
            Status::Unknown => ("?", "?"),
            Status::Ok => ("✓", "+"),
            Status::NotApplicable => ("-", "-"),
        };
        if self.unicode { unicode } else { plain }
    }

    /// A paragraph; its first line begins with `head`, which `columns` columns show.
    fn paragraph(&self, text: &mut String, head: &str, columns: usize, indent: &str, words: &str) {
        let blank = " ".repeat(columns);
        let options = textwrap::Options::new(self.width)
            .initial_indent(&blank)
            .subsequent_indent(indent)
            .break_words(false);
        let words = clean(words);
        for (place, line) in textwrap::wrap(&words, options).iter().enumerate() {
            // Writing to a string does not fail.
            let _ = if place == 0 {
                writeln!(
                    text,
                    "{head}{}",
                    line.get(columns..).unwrap_or_default().trim_end()
                )
            } else {
                writeln!(text, "{}", line.trim_end())
            };
        }
    }
}

fn colour(status: Status) -> Style {
    let plain = Style::new();
    match status {
        Status::Critical => plain.bold().fg_color(Some(AnsiColor::Red.into())),
        Status::Warning => plain.bold().fg_color(Some(AnsiColor::Yellow.into())),
        Status::Ok => plain.fg_color(Some(AnsiColor::Green.into())),
        Status::Info | Status::Unknown | Status::NotApplicable => plain.bold(),
    }
}

/// One outcome: its status, its name, its words, and below what it was concluded from.
fn outcome(layout: &Layout, text: &mut String, judgement: &Judgement) {
    let Outcome {
        status,
        summary,
        seen,
        expected,
        fix,
        advice,
        confidence,
        ..
    } = &judgement.outcome;
    let style = colour(*status);
    let word = match status {
        Status::NotApplicable => "n/a",
        other => other.name(),
    };
    let plain = format!(" {} {word:<8} {}: ", layout.mark(*status), judgement.id);
    let head = format!(
        " {style}{} {word:<8}{style:#} {style}{}{style:#}: ",
        layout.mark(*status),
        judgement.id
    );
    layout.paragraph(text, &head, plain.chars().count(), INDENT, summary);
    if matches!(status, Status::Ok | Status::NotApplicable) {
        return;
    }
    let mut line = |name: &str, words: &str| {
        let head = format!("{INDENT}{name:<9} ");
        let indent = " ".repeat(head.len());
        layout.paragraph(text, &head, head.len(), &indent, words);
    };
    if *status != Status::Unknown {
        let seen: Vec<String> = seen
            .iter()
            .map(|seen| format!("{}: {}", seen.source, seen.value))
            .collect();
        line("seen", &seen.join("; "));
        if !expected.is_empty() {
            line("expected", expected);
        }
        if *confidence != "certain" && *status != Status::Info {
            line("sure", confidence);
        }
    } else if let Some(seen) = seen.first() {
        line("where", &seen.source);
    }
    for fix in fix {
        line("fix", fix);
    }
    for advice in advice {
        line("advice", advice);
    }
}

/// The worst status of each check, counted.
fn counts(judgements: &[Judgement]) -> String {
    let mut worst: BTreeMap<&str, Status> = BTreeMap::new();
    for judgement in judgements {
        let status = worst.entry(judgement.id).or_insert(Status::NotApplicable);
        *status = (*status).max(judgement.outcome.status);
    }
    let count = |status: Status| worst.values().filter(|other| **other == status).count();
    let mut parts = Vec::new();
    for (status, one, many) in [
        (Status::Critical, "critical", "critical"),
        (Status::Warning, "warning", "warnings"),
        (Status::Unknown, "not known", "not known"),
        (Status::Info, "to know", "to know"),
        (Status::Ok, "ok", "ok"),
        (Status::NotApplicable, "not applicable", "not applicable"),
    ] {
        let count = count(status);
        if count > 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    }
    format!("{} checks: {}", worst.len(), parts.join(", "))
}

fn usage(all: &[RecommendedAddress]) -> String {
    let words = all.iter().map(|port| {
        let RecommendedAddress {
            device,
            port,
            gid_index,
            ..
        } = port;
        format!(
            "--ib-dev {device} --ib-port {port} --gid-index {gid_index}   NCCL_IB_HCA=={device}:{port} NCCL_IB_GID_INDEX={gid_index}   UCX_NET_DEVICES={device}:{port}"
        )
    });
    words.collect::<Vec<_>>().join("\n")
}

fn host(layout: &Layout, text: &mut String, examined: &ExaminedHost, all: bool) {
    let snapshot = &examined.host;
    let kernel = snapshot.json("answers/uname.json").ok();
    let kernel = kernel.and_then(|uname| Some(uname.get("release")?.as_str()?.to_owned()));
    let devices = snapshot.names("sys/class/infiniband").len();
    let bold = Style::new().bold();
    let words = format!(
        "{}, {devices} RDMA device{}, kernel {}, {}",
        snapshot.name,
        if devices == 1 { "" } else { "s" },
        kernel.as_deref().unwrap_or("not known"),
        counts(&examined.judgements)
    );
    layout.paragraph(
        text,
        &format!(" {bold}host{bold:#}       "),
        INDENT.len(),
        INDENT,
        &words,
    );
    let mut judgements: Vec<&Judgement> = examined
        .judgements
        .iter()
        .filter(|judgement| {
            // A text has only what somebody asked for: what is right there is the answer, and what is not there was not asked.
            let is_idle = match judgement.outcome.status {
                Status::Ok => !snapshot.is_partial,
                Status::NotApplicable => true,
                Status::Unknown => snapshot.is_partial,
                _ => false,
            };
            all || !is_idle
        })
        .collect();
    judgements.sort_by_key(|judgement| std::cmp::Reverse(shown_first(judgement.outcome.status)));
    for judgement in judgements {
        outcome(layout, text, judgement);
    }
    for (place, line) in usage(&examined.recommended).lines().enumerate() {
        let head = if place == 0 { " use        " } else { INDENT };
        layout.paragraph(text, head, head.len(), INDENT, line);
    }
    let is_idle = |judgement: &&Judgement| judgement.outcome.status == Status::NotApplicable;
    let idle: BTreeSet<&str> = examined
        .judgements
        .iter()
        .filter(is_idle)
        .map(|judgement| judgement.id)
        .collect();
    if snapshot.is_partial {
        let words = "what the text does not have is not known, and not shown; --all lists it";
        layout.paragraph(text, " note       ", INDENT.len(), INDENT, words);
    } else if devices == 0 && !idle.is_empty() {
        let words = format!(
            "without an RDMA device, {} checks have nothing to look at: links, addresses, PFC, DSCP, PCIe, GPUs; --all lists them",
            idle.len()
        );
        layout.paragraph(text, " note       ", INDENT.len(), INDENT, &words);
    }
    let has_unknown = examined
        .judgements
        .iter()
        .any(|judgement| judgement.outcome.status == Status::Unknown);
    if has_unknown && !snapshot.is_recorded && !rustix::process::geteuid().is_root() {
        let words = "root can read more: sudo roce-analyze doctor";
        layout.paragraph(text, " hint       ", INDENT.len(), INDENT, words);
    }
}

/// Order of the groups: first what is wrong, then what is to know, then what could not be read.
fn shown_first(status: Status) -> u8 {
    match status {
        Status::Critical => 5,
        Status::Warning => 4,
        Status::Info => 3,
        Status::Unknown => 2,
        Status::Ok => 1,
        Status::NotApplicable => 0,
    }
}

/// Prints all hosts, and what compares them.
pub(super) fn print(examined: &[ExaminedHost], fleet: &[Judgement], all: bool) -> anyhow::Result<()> {
    let layout = Layout::new();
    let mut text = String::new();
    for examined in examined
        .iter()
        .filter(|one| fleet.is_empty() || !one.judgements.is_empty())
    {
        host(&layout, &mut text, examined, all);
        text.push('\n');
    }
    if !fleet.is_empty() {
        let bold = Style::new().bold();
        let words = format!(
            "{}, {}",
            roce_spelling::plural(examined.len() as u64, "host", "hosts"),
            counts(fleet)
        );
        layout.paragraph(
            &mut text,
            &format!(" {bold}fleet{bold:#}      "),
            INDENT.len(),
            INDENT,
            &words,
        );
        for judgement in fleet
            .iter()
            .filter(|judgement| all || judgement.outcome.status != Status::Ok)
        {
            outcome(&layout, &mut text, judgement);
        }
        text.push('\n');
    }
    // Where no host answered there is no check to explain.
    if !text.is_empty() {
        layout.paragraph(
            &mut text,
            INDENT,
            INDENT.len(),
            INDENT,
            "roce-analyze explain ID says what a check means",
        );
    }
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Prints the commands that would mend what failed. Words in capitals are to be filled in, so such a line is a comment.
pub(super) fn fix_commands(examined: &[ExaminedHost], fleet: &[Judgement]) -> anyhow::Result<()> {
    let mut text = String::new();
    let mut count = 0;
    let mut commands = |text: &mut String, name: &str, judgements: &[Judgement]| {
        let failed = judgements
            .iter()
            .filter(|judgement| judgement.outcome.status >= Status::Warning);
        for judgement in failed {
            let outcome = &judgement.outcome;
            count += 1;
            let _ = writeln!(
                text,
                "# {} {}: {}: {}",
                clean(name),
                outcome.status.name(),
                judgement.id,
                clean(&outcome.summary)
            );
            for fix in &outcome.fix {
                let has_blank = fix.split([' ', '=']).any(|word| PLACEHOLDERS.contains(&word));
                let mark = if has_blank { "# fill in: " } else { "" };
                let _ = writeln!(text, "{mark}{}", clean(fix));
            }
            for advice in &outcome.advice {
                let _ = writeln!(text, "# {}", clean(advice));
            }
            if outcome.fix.is_empty() && outcome.advice.is_empty() {
                let _ = writeln!(
                    text,
                    "# no command mends it; roce-analyze explain {}",
                    judgement.id
                );
            }
        }
    };
    for examined in examined {
        commands(&mut text, &examined.host.name, &examined.judgements);
    }
    commands(&mut text, "fleet", fleet);
    if count == 0 {
        text.push_str("# nothing failed\n");
    } else {
        text.insert_str(
            0,
            "# Nothing of this was run. Settings of dcb, ethtool, ip and setpci are lost at a reboot.\n",
        );
    }
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Says what a recording has: folders with their files, or each file.
pub(super) fn contents(host: &Host, each: bool) -> anyhow::Result<()> {
    let mut folders: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (path, bytes) in host.files() {
        let name = if each {
            path.to_owned()
        } else {
            path.split('/').take(3).collect::<Vec<_>>().join("/")
        };
        let folder = folders.entry(name).or_default();
        folder.0 += 1;
        folder.1 += bytes.len();
    }
    let mut text = String::from("it has these files of this host, and no others:\n");
    for (name, (files, bytes)) in folders {
        let _ = writeln!(
            text,
            "  {}: {}, {}",
            clean(&name),
            roce_spelling::plural(files as u64, "file", "files"),
            roce_spelling::plural(bytes as u64, "byte", "bytes")
        );
    }
    text.push_str(
        "It has the host's name, IP addresses of RDMA ports, names of interfaces, and the variables NCCL_*, UCX_* and PCIDEVICE_*.\n\
         Left out are link addresses, GUIDs, other variables, and other arguments of the kernel.\n",
    );
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(())
}
