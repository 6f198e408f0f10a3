//! The first help that people see: what there is, on one screen. All options are in the help of the analysis and of each command.

use std::ffi::OsStr;
use std::fmt::Write;

use clap::Command;

/// Columns of a name in the list.
const NAME: usize = 22;

/// A group of commands: its heading, and of each line the commands that it names (none: it is about captures), what is typed, and
/// what that does.
type Group = (
    &'static str,
    &'static [(&'static [&'static str], &'static str, &'static str)],
);

/// The groups, in their order. A command that is in none of them gets a line of its own in the last one.
const GROUPS: &[Group] = &[
    (
        "Captures",
        &[
            (&[], "CAPTURE...", "verdicts with evidence, counts, flows"),
            (
                &[],
                "CAPTURE... -o DIR",
                "also a Parquet dataset, run.json and report.html",
            ),
            (
                &["report"],
                "report DIR",
                "the HTML page of such results, of several hosts too",
            ),
            (
                &["query", "compare", "mcp", "annotate"],
                "query, compare, mcp",
                "SQL; two runs; answers by MCP (annotate: Wireshark)",
            ),
            (
                &["replay"],
                "replay CAPTURE",
                "a capture on the live screen, at its own pace",
            ),
        ],
    ),
    (
        "Hosts",
        &[
            (
                &["live"],
                "live -i DEVICE",
                "capture and analyse at the same time",
            ),
            (&["devices"], "devices", "what can be captured on this host"),
            (
                &["doctor", "host", "metrics"],
                "doctor, host, metrics",
                "checks of RDMA setup; counters, also for Prometheus",
            ),
            (
                &["fabric", "fleet", "dataset"],
                "fabric, fleet, dataset",
                "switches; captures on many hosts, as one dataset",
            ),
            (
                &["traffic"],
                "traffic run PLAN",
                "perftest on many hosts; results of traffic tools",
            ),
        ],
    ),
    (
        "Learn",
        &[
            (
                &["demo"],
                "demo NAME",
                "a lesson with a simulated capture, packet by packet",
            ),
            (
                &["simulate"],
                "simulate NAME -o FILE",
                "a capture whose truth is known",
            ),
            (
                &["explain"],
                "explain NAME",
                "a finding, a table or a word; 'list' names all",
            ),
        ],
    ),
];

/// Commands that the last lines name.
const BESIDE: [&str; 3] = ["help", "man", "completions"];

/// True if arguments, without the program's name, request this help.
pub(crate) fn is_wanted<A: AsRef<OsStr>>(mut arguments: impl Iterator<Item = A>) -> bool {
    let first = arguments.next();
    let is_help =
        first.is_some_and(|first| ["-h", "--help", "help"].map(OsStr::new).contains(&first.as_ref()));
    is_help && arguments.next().is_none()
}

/// The text, for the commands of this build.
pub(crate) fn overview(command: &Command) -> String {
    let has = |name: &&str| command.get_subcommands().any(|found| found.get_name() == *name);
    let mut text = String::from(
        "Per-flow congestion timelines of RoCEv2 traffic: who slowed whom, when and why\n\nUsage: roce-analyze [OPTIONS] CAPTURE...\n       roce-analyze COMMAND ...\n",
    );
    let line = |text: &mut String, typed: &str, does: &str| {
        let _ = writeln!(text, "  {typed:NAME$}  {does}");
    };
    for (number, (heading, lines)) in GROUPS.iter().enumerate() {
        let _ = writeln!(text, "{heading}:");
        for (names, typed, does) in *lines {
            if names.iter().all(has) {
                line(&mut text, typed, does);
            }
        }
        if number + 1 == GROUPS.len() {
            for other in others(command) {
                let about = other.get_about().map(ToString::to_string).unwrap_or_default();
                line(&mut text, other.get_name(), &about);
            }
        }
    }
    text.push_str(
        "\nAll options: roce-analyze CAPTURE --help, roce-analyze COMMAND --help.\nAlso: man, completions. Exit codes: 0 done, 1 by --fail-on, 2 an error.\n",
    );
    text
}

/// Visible commands that no line names.
fn others(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|found| {
        let name = found.get_name();
        let mut lines = GROUPS.iter().flat_map(|(_, lines)| *lines);
        !found.is_hide_set() && !BESIDE.contains(&name) && !lines.any(|(names, ..)| names.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fits_one_screen_and_names_every_command() {
        let command = crate::command_line();
        let text = overview(&command);
        // The smallest terminal, and a line for the next prompt.
        assert!(
            text.lines().count() < 24,
            "{} lines:\n{text}",
            text.lines().count()
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for found in command.get_subcommands().filter(|found| !found.is_hide_set()) {
            let name = found.get_name();
            assert!(text.contains(name) || name == "completions", "{name}");
        }
        assert_eq!(others(&command).count(), 0, "each command has a line in a group");
    }

    #[test]
    fn help_of_something_is_not_this_one() {
        for (arguments, expected) in [
            (&["-h"][..], true),
            (&["--help"], true),
            (&["help"], true),
            (&["help", "live"], false),
            (&["a.pcap", "--help"], false),
            (&["live", "-h"], false),
            (&[], false),
        ] {
            assert_eq!(is_wanted(arguments.iter()), expected, "{arguments:?}");
        }
    }
}
