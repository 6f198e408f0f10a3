//! Words by which devices refuse a command. The forms of whole answers are left to those who read them.

use crate::device::Reason;

/// Characters of a line that are looked at: refusals are short.
const MAX_LINE: usize = 200;

/// Beginnings of lines by which a CLI says that it does not know a command, in lower case: NX-OS ("% Invalid command at '^' marker.",
/// "Syntax error while parsing", "% Incomplete command", "Structured output unsupported"), EOS ("% Invalid input", "% Ambiguous command"),
/// click, which SONiC's CLI is made with ("Error: No such command"), ESXi ("Error: Unknown command or namespace"), and shells.
const UNKNOWN: [&str; 12] = [
    "% invalid",
    "%invalid",
    "% incomplete",
    "% ambiguous",
    "syntax error",
    "invalid command",
    "error: no such command",
    "error: unknown command or namespace",
    "error: got unexpected extra argument",
    "error: this command does not support json",
    "structured output unsupported",
    "cmd exec error",
];
/// Parts of lines by which a device says that the account may not do this, in lower case.
const FORBIDDEN: [&str; 7] = [
    "permission denied",
    "authorization denied",
    "authorization failed",
    "not authorized",
    "a password is required",
    "privileges are required",
    "operation not permitted",
];

/// The reason of a line that refuses a command; `None`: it refuses none.
pub fn refusal_in(line: &str) -> Option<Reason> {
    let lower: String = line
        .trim()
        .chars()
        .take(MAX_LINE)
        .collect::<String>()
        .to_lowercase();
    if UNKNOWN.iter().any(|begin| lower.starts_with(begin)) {
        Some(Reason::Unsupported)
    } else if FORBIDDEN.iter().any(|part| lower.contains(part)) {
        Some(Reason::Permission)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_several_systems() {
        let cases = [
            ("% Invalid command at '^' marker.", Some(Reason::Unsupported)),
            ("Syntax error while parsing 'show foo'", Some(Reason::Unsupported)),
            ("% Incomplete command at '^' marker.", Some(Reason::Unsupported)),
            (
                "Error: No such command \"priority-group\".",
                Some(Reason::Unsupported),
            ),
            (
                "Error: Unknown command or namespace network nic foo",
                Some(Reason::Unsupported),
            ),
            ("% Permission denied for the role", Some(Reason::Permission)),
            ("% Authorization failed", Some(Reason::Permission)),
            ("sudo: a password is required", Some(Reason::Permission)),
            (
                "bash: /usr/bin/redis-cli: Permission denied",
                Some(Reason::Permission),
            ),
            ("Ethernet1/1/1 invalid command", None),
            ("Ethernet1/1/1 On On (8)", None),
            ("", None),
        ];
        for (line, reason) in cases {
            assert_eq!(refusal_in(line), reason, "{line}");
        }
        let long = format!("{} permission denied", "x".repeat(MAX_LINE));
        assert_eq!(refusal_in(&long), None, "a refusal is short");
    }
}
