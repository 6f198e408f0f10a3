//! Lines with ink into cells.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

use super::super::ink::{Ink, dry};

/// Fills the rows from `top` on. What has no room at the right is cut off; all cells are filled.
pub(super) fn lines(buffer: &mut Buffer, lines: &[String], top: u16, color: bool) {
    buffer.reset();
    for (line, y) in lines.iter().zip(top..buffer.area.bottom()) {
        let (mut x, mut run, mut ink) = (0, String::new(), None);
        for painted in line.chars() {
            let (next, glyph) = dry(painted).map_or((None, painted), |(ink, glyph)| (Some(ink), glyph));
            if next != ink {
                x = put(buffer, x, y, &run, look(ink, color));
                run.clear();
                ink = next;
            }
            run.push(glyph);
        }
        put(buffer, x, y, &run, look(ink, color));
    }
}

fn put(buffer: &mut Buffer, x: u16, y: u16, text: &str, style: Style) -> u16 {
    let room = usize::from(buffer.area.right().saturating_sub(x));
    if room == 0 || text.is_empty() {
        return x;
    }
    buffer.set_stringn(x, y, text, room, style).0
}

/// A selected row.
pub(super) fn select(buffer: &mut Buffer, row: usize) {
    let mut area = buffer.area;
    area.y = u16::try_from(row).unwrap_or(u16::MAX);
    area.height = 1;
    buffer.set_style(area.intersection(buffer.area), Modifier::REVERSED);
}

/// The colours of other screens; without colours, bad values are bold.
fn look(ink: Option<Ink>, color: bool) -> Style {
    let style = Style::new();
    match (ink, color) {
        (Some(Ink::Bold), _) | (Some(Ink::Bad), false) => style.add_modifier(Modifier::BOLD),
        (Some(Ink::Faint), true) => style.add_modifier(Modifier::DIM),
        (Some(Ink::Warn), true) => style.fg(Color::Yellow),
        (Some(Ink::Bad), true) => style.fg(Color::Red),
        (Some(Ink::Good), true) => style.fg(Color::Cyan),
        (None, _) | (Some(Ink::Faint | Ink::Warn | Ink::Good), false) => style,
    }
}
