//! Texts by which devices refuse a command.

use roce_switches::refusal_in;

use super::answer::UnansweredQuestion;

/// Longer texts are answers.
const MAX_REFUSAL_BYTES: usize = 4 << 10;

/// The reason of a text that refuses a command; `None`: it is an answer.
pub(crate) fn refusal(text: &str) -> Option<UnansweredQuestion> {
    if text.len() > MAX_REFUSAL_BYTES {
        return None;
    }
    // A document may contain any words.
    let begin = text.trim_start();
    if begin.starts_with(['{', '[']) || begin.starts_with("== ") {
        return None;
    }
    text.lines().map(str::trim).find_map(|line| {
        let reason = refusal_in(line)?;
        Some(UnansweredQuestion {
            answer: Some(text.to_owned()),
            ..UnansweredQuestion::new(reason, line)
        })
    })
}

#[cfg(test)]
mod tests {
    use roce_switches::device::Reason;

    use super::*;

    #[test]
    fn refusals_of_several_systems() {
        let reason = |text: &str| refusal(text).map(|refused| refused.reason);
        for text in [
            "            ^\n% Invalid command at '^' marker.\n",
            "Syntax error while parsing 'show foo'\n\nCmd exec error.\n",
            "% Invalid input (at token 1: 'foo')\r\n",
            "Usage: show [OPTIONS] COMMAND [ARGS]...\nTry \"show -h\" for help.\n\nError: No such command \"priority-group\".\n",
            "Error: Unknown command or namespace network nic foo\n",
        ] {
            assert_eq!(reason(text), Some(Reason::Unsupported), "{text}");
        }
        for text in [
            "% Permission denied for the role\n",
            "sudo: a password is required\n",
        ] {
            assert_eq!(reason(text), Some(Reason::Permission), "{text}");
        }
        // An interface that somebody described so.
        let described = format!("Ethernet1/1/1 invalid command\n{}", "x".repeat(MAX_REFUSAL_BYTES));
        for text in [
            "",
            "{\"a\":\"% Invalid command\"}",
            "Ethernet1/1/1 On On (8)\n",
            &described,
        ] {
            assert_eq!(reason(text), None, "{text}");
        }
    }
}
