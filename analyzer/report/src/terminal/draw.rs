//! Draws strips: eight levels of blocks, or of ASCII characters, coloured where there was congestion or loss.

use super::ink::{BLOCKS, Ink};
use super::strip::Column;
use super::style::Style;

/// The eight levels without Unicode.
const ASCII: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];

/// Meaning of a column's height.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Height {
    /// Bytes, coloured by CE and loss.
    Volume,
    /// Share of data packets with CE.
    Ce,
    /// Retransmitted or missing packets.
    Trouble,
}

impl Height {
    fn value(self, column: &Column) -> f64 {
        match self {
            Self::Volume => column.volume,
            Self::Ce => column.ce / column.data.max(f64::MIN_POSITIVE),
            Self::Trouble => column.trouble,
        }
    }

    fn ink(self, column: &Column) -> Option<Ink> {
        match self {
            Self::Volume if column.has_trouble => Some(Ink::Bad),
            Self::Volume if column.has_ce => Some(Ink::Warn),
            Self::Volume => None,
            Self::Ce => Some(Ink::Warn),
            Self::Trouble => Some(Ink::Bad),
        }
    }
}

/// The height of the highest column.
pub(super) fn peak(columns: &[Column], height: Height) -> f64 {
    columns
        .iter()
        .map(|column| height.value(column))
        .fold(0.0, f64::max)
}

/// The strip, scaled to its own peak. Anything more than nothing has at least the lowest level.
pub(super) fn strip(columns: &[Column], height: Height, style: &Style) -> String {
    let levels = if style.unicode { BLOCKS } else { ASCII };
    let peak = peak(columns, height);
    let draw = |column: &Column| {
        let value = height.value(column);
        let ink = height.ink(column);
        // Loss without any data in that time is still to be seen.
        let seen = value > 0.0 || (height == Height::Volume && ink.is_some());
        if !seen {
            return ' ';
        }
        let part = if peak > 0.0 { value / peak } else { 0.0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 8"
        )]
        let level = ((part * 8.0).ceil() as usize).clamp(1, 8) - 1;
        ink.map_or(levels[level], |ink| ink.dip(levels[level]))
    };
    columns.iter().map(draw).collect()
}

/// Plain bars, scaled to the highest.
pub(super) fn bars(values: &[f64], style: &Style) -> String {
    let columns: Vec<Column> = values
        .iter()
        .map(|value| Column {
            volume: *value,
            ..Column::default()
        })
        .collect();
    strip(&columns, Height::Volume, style)
}

#[cfg(test)]
mod tests {
    use super::super::ink::paint;
    use super::*;

    const UNICODE: Style = Style {
        width: 80,
        color: true,
        unicode: true,
        top: 10,
        full: false,
        rows: None,
    };

    fn column(volume: f64, has_ce: bool, has_trouble: bool) -> Column {
        Column {
            volume,
            has_ce,
            has_trouble,
            ..Column::default()
        }
    }

    #[test]
    fn heights_and_colors() {
        let columns = [
            column(0.0, false, false),
            column(1.0, false, false),
            column(50.0, true, false),
            column(100.0, true, true),
        ];
        assert_eq!(
            paint(&strip(&columns, Height::Volume, &UNICODE), true),
            " ▁\u{1b}[33m▄\u{1b}[0m\u{1b}[31m█\u{1b}[0m\n"
        );
        let ascii = Style {
            unicode: false,
            color: false,
            ..UNICODE
        };
        assert_eq!(paint(&strip(&columns, Height::Volume, &ascii), false), " .=@\n");
    }

    #[test]
    fn a_share_of_no_data_is_nothing() {
        let columns = [
            Column::default(),
            Column {
                data: 10.0,
                ce: 5.0,
                ..Column::default()
            },
        ];
        assert_eq!(paint(&strip(&columns, Height::Ce, &UNICODE), false), " █\n");
        assert!((peak(&columns, Height::Ce) - 0.5).abs() < 1e-9);
    }
}
