//! Texts of switches: what the terminal, the banner and the prompt add to the answer of a command.

use roce_hosts::without_terminal;

/// First words of a command line behind a prompt.
const VERBS: [&str; 22] = [
    "show",
    "sh",
    "do",
    "watch",
    "terminal",
    "term",
    "exit",
    "end",
    "nv",
    "sudo",
    "cat",
    "pfcwd",
    "pfcstat",
    "portstat",
    "queuestat",
    "cl-netstat",
    "ethtool",
    "lldpcli",
    "grep",
    "sonic-db-dump",
    "vsish",
    "esxcli",
];

/// The answer to `command` in a text that a terminal may have recorded: without control sequences, and without the banner, the prompts
/// and the answers to other commands.
///
/// Lines are kept whole, with their blanks at the start; empty lines are left out.
pub(crate) fn answer_of(text: &str, command: &str) -> String {
    let text = without_terminal(text);
    let wanted = words(command);
    let mut lines: Vec<&str> = Vec::new();
    // A second command's answer is not part of it.
    let mut is_other = false;
    for line in text.lines() {
        let line = line.trim_end();
        let blank = line.trim_start();
        if let Some(typed) = typed_behind_prompt(blank) {
            if words(typed) == wanted {
                // A banner, or another command, is before it.
                lines.clear();
                is_other = false;
            } else {
                is_other = !typed.is_empty() && !lines.is_empty();
            }
            continue;
        }
        if blank.is_empty() || is_other || (blank.len() <= MAX_COMMAND && words(blank) == wanted) {
            continue;
        }
        lines.push(line);
    }
    let mut answer = String::with_capacity(text.len());
    for line in lines {
        answer.push_str(line);
        answer.push('\n');
    }
    answer
}

/// The text up to the end of its last whole line: `None` where that is all of it. A last line without an end may be cut inside of a
/// number; a prompt or blanks are none.
pub(crate) fn up_to_last_end(text: &str) -> Option<&str> {
    let start = text.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let last = &text[start..];
    if last.len() <= MAX_LAST {
        let last = without_terminal(last);
        let last = last.trim();
        if last.is_empty() || typed_behind_prompt(last).is_some() {
            return None;
        }
    }
    Some(&text[..start])
}

/// The text of the problem of an answer that [`up_to_last_end`] cuts.
pub(crate) const CUT: &str =
    "the last line has no end: the answer may be cut short, and the line is not read";

/// Longest line that is compared with the command, in bytes.
const MAX_COMMAND: usize = 512;

/// Longest prompt, in bytes: a host's name has at most 253 (RFC 1035, 2.3.4), and a user, a folder or a mode may stand beside it.
const MAX_PROMPT: usize = 1_024;

/// Longest line that may be a prompt, in bytes, with its control sequences.
const MAX_LAST: usize = 16 << 10;

/// The words of a command, without the pipe to JSON that it may end with.
fn words(command: &str) -> Vec<&str> {
    let command = command.rsplit_once('|').map_or(command, |(before, filter)| {
        if matches!(filter.trim(), "json" | "no-more" | "json-pretty") {
            before
        } else {
            command
        }
    });
    command.split_whitespace().collect()
}

/// The command behind a prompt (`leaf1# show version`, `admin@leaf1:~$ `); `None` of a line that has no prompt.
///
/// A heading such as `QoS-Group# Bandwidth%` is none: what follows a prompt is a command or nothing.
pub(crate) fn typed_behind_prompt(line: &str) -> Option<&str> {
    let mut bytes = line.bytes().take(MAX_PROMPT);
    let end = bytes.position(|byte| matches!(byte, b'#' | b'>' | b'$'))?;
    let (host, rest) = (&line[..end], &line[end + 1..]);
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"._-()@:~/".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host) {
        return None;
    }
    let typed = rest.trim();
    let verb = typed.split_whitespace().next().unwrap_or_default();
    (typed.is_empty() || VERBS.contains(&verb)).then_some(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_is_left() {
        let text = "\u{feff}Unauthorized access is forbidden\r\nleaf1# show interface flowcontrol\r\nPort  RxPause\r\n--More--\r        \r\u{1b}[1mEth1/1/1  5\r\n\r\nleaf1# show clock\r\n12:00\r\nleaf1# \r\n";
        assert_eq!(
            answer_of(text, "show interface flowcontrol"),
            "Port  RxPause\nEth1/1/1  5\n"
        );
        assert_eq!(
            answer_of(
                "a(config)# show  queuing interface | json\n{}\n",
                "show queuing interface"
            ),
            "{}\n"
        );
        assert_eq!(
            answer_of("admin@leaf1:~$ show pfc counters\n 5\n", "show pfc counters"),
            " 5\n"
        );
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        assert_eq!(up_to_last_end("a 5\nb 12"), Some("a 5\n"));
        assert_eq!(up_to_last_end("b 12"), Some(""));
        for whole in ["", "a 5\n", "a 5\r\nleaf1# ", "a 5\n  ", "a\rleaf1# exit"] {
            assert_eq!(up_to_last_end(whole), None, "{whole:?}");
        }
    }

    #[test]
    fn a_heading_is_not_a_prompt() {
        let text = "QoS-Group# Bandwidth% PrioLevel\n      3     -     1\n";
        assert_eq!(answer_of(text, "show queuing interface"), text);
    }

    #[test]
    fn a_text_without_prompts_is_kept() {
        assert_eq!(answer_of("show clock\na\n\n b\n", "show clock"), "a\n b\n");
        assert_eq!(answer_of("", "show clock"), "");
    }
}
