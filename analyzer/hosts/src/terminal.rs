//! Cleaning of texts that a terminal recorded.

/// The text without what a terminal adds: a byte order mark, control sequences (ECMA-48, 5.4 and 5.6), characters that a backspace
/// deletes, lines of a pager that are overwritten.
pub fn without_terminal(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.trim_start_matches('\u{feff}').chars();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut characters),
            '\u{8}' => {
                if plain.chars().next_back().is_some_and(|last| last != '\n') {
                    plain.pop();
                }
            }
            '\r' => plain.push('\n'),
            '\0' | '\u{7}' => {}
            other => plain.push(other),
        }
    }
    plain.replace("--More--", " ")
}

/// Passes over the rest of an escape sequence.
fn skip_sequence(characters: &mut std::str::Chars<'_>) {
    match characters.next() {
        // ESC [, parameters, a final byte.
        Some('[') => {
            let _ = characters.find(|character| ('@'..='~').contains(character));
        }
        // A string of the operating system: up to BEL or ESC \. It ends with its line at the latest.
        Some(']') => {
            let end = characters.find(|character| matches!(character, '\u{7}' | '\u{1b}' | '\n'));
            if end == Some('\u{1b}') {
                characters.next();
            }
        }
        // The character set of a terminal: ESC ( B.
        Some('(' | ')') => {
            characters.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_and_pagers_leave_nothing() {
        assert_eq!(without_terminal("\u{feff}\u{1b}[1mRx\u{1b}[0m 5\r\n"), "Rx 5\n\n");
        assert_eq!(
            without_terminal("a\n--More--\r        \rb 5"),
            "a\n \n        \nb 5"
        );
        assert_eq!(
            without_terminal("--More--\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}x"),
            "x"
        );
        assert_eq!(without_terminal("\u{1b}]0;title\u{7}x\u{1b}(By\u{1b}"), "xy");
        assert_eq!(without_terminal("5\u{7}\0\n"), "5\n", "a bell and NUL");
        // A sequence that is cut off takes the rest with it.
        assert_eq!(without_terminal("a\u{1b}[31"), "a");
    }
}
