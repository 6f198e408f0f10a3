//! Colour that does not disturb layout: coloured characters are private-use characters of width one until the whole
//! screen is laid out, and become glyphs and escape sequences only then. Text from captures is cleaned here too.
//! Which words get which colour is left to others.

use anstyle::{AnsiColor, Style};
use roce_model::text::steers;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Meaning of a colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ink {
    /// A heading.
    Bold,
    /// Beside the point.
    Faint,
    /// Congestion, or something to look at.
    Warn,
    /// Loss.
    Bad,
    /// Expected.
    Good,
}

/// Start of the coloured characters: a plane that nobody else uses, eight bits for the character.
const PLANE: u32 = 0xf_0000;

const INKS: [Ink; 5] = [Ink::Bold, Ink::Faint, Ink::Warn, Ink::Bad, Ink::Good];

/// The eight levels of a strip, lowest first.
pub(super) const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The code of the lowest of [`BLOCKS`].
const BLOCK: u32 = 0x81;
/// Other characters that can be coloured, by their codes.
const OTHERS: [(u32, char); 6] = [
    (0x91, '…'),
    (0x92, '─'),
    (0x93, '✗'),
    (0x94, '▲'),
    (0x95, '•'),
    (0x96, '✓'),
];

impl Ink {
    fn style(self) -> Style {
        match self {
            Self::Bold => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            // Not green: who cannot tell it from red sees this one.
            Self::Good => AnsiColor::Cyan.on_default(),
        }
    }

    /// `text` in this ink. Characters that no table holds stay without.
    pub(super) fn paint(self, text: &str) -> String {
        text.chars().map(|glyph| self.dip(glyph)).collect()
    }

    pub(super) fn dip(self, glyph: char) -> char {
        let code = match glyph {
            ' '..='~' => u32::from(glyph),
            '▁'..='█' => BLOCK + (u32::from(glyph) - u32::from('▁')),
            other => match OTHERS.iter().find(|(_, known)| *known == other) {
                Some((code, _)) => *code,
                None => return glyph,
            },
        };
        char::from_u32(PLANE + ((self as u32) << 8) + code).unwrap_or(glyph)
    }
}

/// The ink and the glyph of a coloured character.
pub(super) fn dry(painted: char) -> Option<(Ink, char)> {
    let code = u32::from(painted).checked_sub(PLANE)?;
    let ink = *INKS.get(usize::try_from(code >> 8).ok()?)?;
    let glyph = match code & 0xff {
        block if (BLOCK..BLOCK + 8).contains(&block) => char::from_u32(u32::from('▁') + block - BLOCK)?,
        code => match OTHERS.iter().find(|(known, _)| *known == code) {
            Some((_, glyph)) => *glyph,
            None => char::from_u32(code)?,
        },
    };
    Some((ink, glyph))
}

/// The screen as it is written: with escape sequences, or without any colour. Lines lose the blanks at their end.
pub(super) fn paint(screen: &str, color: bool) -> String {
    let mut painted = String::with_capacity(screen.len());
    for line in screen.lines() {
        let blank = |glyph: char| glyph == ' ' || dry(glyph).is_some_and(|(_, glyph)| glyph == ' ');
        let mut current = None;
        for glyph in line.trim_end_matches(blank).chars() {
            let (ink, glyph) = dry(glyph).map_or((None, glyph), |(ink, glyph)| (Some(ink), glyph));
            if color && ink != current {
                change(&mut painted, current, ink);
                current = ink;
            }
            painted.push(glyph);
        }
        change(&mut painted, current, None);
        painted.push('\n');
    }
    painted
}

fn change(painted: &mut String, from: Option<Ink>, to: Option<Ink>) {
    if let Some(from) = from {
        painted.push_str(&from.style().render_reset().to_string());
    }
    if let Some(to) = to {
        painted.push_str(&to.style().render().to_string());
    }
}

/// Text from outside, safe to lay out: characters that steer a terminal, take no room, or are private (coloured ones are) become `?`.
pub(super) fn clean(text: &str) -> String {
    let safe = |glyph: char| {
        let steers = steers(glyph) || glyph.width().unwrap_or(0) == 0;
        let private = u32::from(glyph) >= PLANE || ('\u{e000}'..='\u{f8ff}').contains(&glyph);
        if steers || private { '?' } else { glyph }
    };
    text.chars().map(safe).collect()
}

/// Columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// `text` in at most `room` columns: its middle goes first.
pub(super) fn shorten(text: &str, room: usize, unicode: bool) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mark = if unicode { "…" } else { ".." };
    let keep = room.saturating_sub(width(mark));
    if keep == 0 {
        return mark.chars().take(room).collect();
    }
    let head = take(text.chars(), keep.div_ceil(2));
    let tail: Vec<char> = take(text.chars().rev(), keep / 2).chars().collect();
    let tail: String = tail.into_iter().rev().collect();
    format!("{head}{mark}{tail}")
}

fn take(text: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    text.take_while(|glyph| {
        used += glyph.width().unwrap_or(0);
        used <= room
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_takes_no_room_and_is_gone_without_color() {
        let text = format!("a{}b", Ink::Warn.paint("12 █…✗▲•✓"));
        assert_eq!(width(&text), 11);
        assert_eq!(paint(&text, false), "a12 █…✗▲•✓b\n");
        assert_eq!(paint(&text, true), "a\u{1b}[33m12 █…✗▲•✓\u{1b}[0mb\n");
    }

    #[test]
    fn lines_end_without_color_and_blanks() {
        let text = format!("{}\n{}  ", Ink::Bad.paint("x"), Ink::Bold.paint(" "));
        assert_eq!(paint(&text, true), "\u{1b}[31mx\u{1b}[0m\n\n");
    }

    #[test]
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\nc\u{202e}d\u{f0041}e"), "a?[2Jb?c?d?e");
        assert_eq!(clean("überholt.pcap"), "überholt.pcap");
    }

    #[test]
    fn the_middle_goes_first() {
        assert_eq!(shorten("fd00:1234:5678::7a:3c01", 11, true), "fd00:…:3c01");
        assert_eq!(shorten("fd00:1234:5678::7a:3c01", 11, false), "fd00:..3c01");
        assert_eq!(shorten("10.0.0.1", 8, true), "10.0.0.1");
        assert_eq!(width(&shorten("漢字漢字漢字", 6, true)), 5);
        assert_eq!(shorten("abc", 1, true), "…");
        assert_eq!(shorten("abc", 0, true), "");
    }
}
