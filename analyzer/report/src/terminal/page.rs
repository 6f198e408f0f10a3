//! A page of running text in the style of the report: headings, paragraphs, hanging items, small tables.
//! For texts around a report; their authors provide the contents.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use super::grid::{Column, draw, gap};
use super::ink::{Ink, clean, paint, shorten, width};
use super::style::{MIN_WIDTH, Style};

/// Lines of prose longer than this are hard to read, however wide the screen is.
const PROSE: usize = 100;

/// Emphasis of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Not at all.
    Plain,
    /// It names what follows.
    Bold,
    /// Beside the point.
    Faint,
    /// Expected.
    Good,
    /// Something to look at.
    Warn,
    /// Something is wrong.
    Bad,
}

impl Tone {
    fn paint(self, text: &str) -> String {
        let ink = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => Ink::Bold,
            Self::Faint => Ink::Faint,
            Self::Good => Ink::Good,
            Self::Warn => Ink::Warn,
            Self::Bad => Ink::Bad,
        };
        ink.paint(text)
    }
}

/// A page that is written from top to bottom.
#[derive(Clone, Debug)]
pub struct Page {
    style: Style,
    lines: Vec<String>,
}

impl Page {
    /// An empty page.
    pub fn new(style: Style) -> Self {
        Self {
            style: Style {
                width: style.width.max(MIN_WIDTH),
                ..style
            },
            lines: Vec::new(),
        }
    }

    /// An empty line, unless there is one already or nothing comes before it.
    pub fn space(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    /// A title with a line through the page.
    pub fn title(&mut self, text: &str) {
        self.space();
        let dash = if self.style.unicode { "─" } else { "-" };
        let text = shorten(
            &clean(text),
            self.style.width.saturating_sub(6),
            self.style.unicode,
        );
        let left = self.measure().saturating_sub(width(&text) + 4);
        let (before, after) = (
            Ink::Faint.paint(&dash.repeat(2)),
            Ink::Faint.paint(&dash.repeat(left)),
        );
        self.lines
            .push(format!("{before} {} {after}", Ink::Bold.paint(&text)));
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        self.space();
        self.wrap("", None, "", text, Some(Tone::Bold));
    }

    /// Running text. Empty lines separate paragraphs; text between backticks is emphasised.
    pub fn text(&mut self, text: &str) {
        for (place, paragraph) in paragraphs(text).into_iter().enumerate() {
            if place > 0 {
                self.space();
            }
            self.wrap("", None, "", &paragraph, None);
        }
    }

    /// Running text behind a mark: `indent` blanks, the mark, then the text; its further lines begin `hang` columns in.
    pub fn entry(&mut self, indent: usize, mark: &str, text: &str, hang: usize) {
        let painted = Ink::Faint.paint(mark);
        for paragraph in paragraphs(text) {
            self.wrap(
                &" ".repeat(indent),
                Some(hang),
                &format!("{painted} "),
                &paragraph,
                None,
            );
        }
    }

    /// Running text beside a mark: `indent` blanks, the mark, then the text, all its lines below each other.
    pub fn item(&mut self, indent: usize, mark: &str, text: &str) {
        let painted = Ink::Faint.paint(mark);
        let blanks = " ".repeat(indent);
        for (place, paragraph) in paragraphs(text).into_iter().enumerate() {
            let mark = if place == 0 {
                painted.clone()
            } else {
                " ".repeat(width(mark))
            };
            self.wrap(&blanks, None, &format!("{mark} "), &paragraph, None);
        }
    }

    /// Lines as they are, in the page's margin.
    pub fn verbatim(&mut self, text: &str) {
        for line in text.trim_matches('\n').lines() {
            self.lines.push(format!(" {}", clean(line)));
        }
    }

    /// A command, after a prompt: where it needs several lines they end so that a shell goes on.
    pub fn command(&mut self, words: &[String]) {
        let mut line = format!(" {}", Ink::Faint.paint("$"));
        for word in words {
            let word = clean(word);
            if width(&line) + 1 + width(&word) + 2 > self.style.width && width(&line) > 6 {
                line.push_str(" \\");
                self.lines.push(std::mem::replace(&mut line, " ".repeat(5)));
            }
            line.push(' ');
            line.push_str(&Ink::Bold.paint(&word));
        }
        self.lines.push(line);
    }

    /// A table: titles, and rows of cells with their tones. The first column shrinks when there is no
    /// room.
    pub fn table(&mut self, titles: &[&'static str], rows: &[Vec<(String, Tone)>]) {
        let mut columns: Vec<Column> = titles
            .iter()
            .enumerate()
            .map(|(place, title)| {
                Column::new(title, false, 0, rows, |row| {
                    row.get(place)
                        .map_or_else(String::new, |(text, tone)| tone.paint(&clean(text)))
                })
            })
            .collect();
        let gap = gap(&self.style) + 1;
        let others: usize = columns.iter().skip(1).map(|column| column.width() + gap).sum();
        let room = self.style.width.saturating_sub(others + gap);
        if let Some(first) = columns.first_mut() {
            for cell in &mut first.cells {
                *cell = shorten(cell, room, self.style.unicode);
            }
        }
        self.lines.extend(draw(&columns, gap));
    }

    /// The page as text: with escape sequences, or without any colour.
    pub fn finish(self) -> String {
        let mut text = self.lines.join("\n");
        if !self.lines.is_empty() {
            text.push('\n');
        }
        paint(&text, self.style.color)
    }

    /// The columns of prose.
    fn measure(&self) -> usize {
        self.style.width.min(PROSE)
    }

    /// `mark` and `text` behind `indent`; further lines begin below the text, or `hang` columns in.
    fn wrap(&mut self, indent: &str, hang: Option<usize>, mark: &str, text: &str, tone: Option<Tone>) {
        let first = format!(" {indent}{mark}");
        let rest = " ".repeat(hang.map_or_else(|| width(&first), |hang| hang + 1));
        // Without bold the marks stay.
        let text = if self.style.color || tone.is_some() {
            emphasised(&clean(text), tone)
        } else {
            clean(text)
        };
        let options = Options::new(self.measure())
            .initial_indent(&first)
            .subsequent_indent(&rest)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .wrap_algorithm(WrapAlgorithm::FirstFit);
        self.lines.extend(
            textwrap::wrap(&text, options)
                .into_iter()
                .map(std::borrow::Cow::into_owned),
        );
    }
}

/// The paragraphs of a text: lines up to an empty one, joined.
fn paragraphs(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines
        .split(|line| line.is_empty())
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join(" "))
        .collect()
}

/// Text between backticks becomes bold, without them, word by word, so that lines can break between
/// words.
fn emphasised(text: &str, tone: Option<Tone>) -> String {
    let mut painted = String::with_capacity(text.len());
    for (place, part) in text.split('`').enumerate() {
        let tone = match (tone, place % 2) {
            (Some(tone), _) => tone,
            (None, 1) => Tone::Bold,
            (None, _) => Tone::Plain,
        };
        for (word_place, word) in part.split(' ').enumerate() {
            if word_place > 0 {
                painted.push(' ');
            }
            painted.push_str(&tone.paint(word));
        }
    }
    painted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize) -> Page {
        Page::new(Style {
            width,
            ..Style::default()
        })
    }

    #[test]
    fn text_wraps_with_hanging_indents() {
        let mut page = page(60);
        page.title("clean");
        page.text("one two\nthree\n\nfour `five six` seven");
        page.item(2, "at", &"word ".repeat(14));
        page.space();
        page.space();
        let rule = "─".repeat(60 - 4 - 5);
        assert_eq!(
            page.finish(),
            format!(
                "── clean {rule}\n one two three\n\n four `five six` seven\n\
                 \x20  at word word word word word word word word word word word\n\
                 \x20     word word word\n\n"
            )
        );
    }

    #[test]
    fn prose_stays_narrow_on_a_wide_screen_and_never_leaves_a_narrow_one() {
        for (width, most) in [(20, 60), (60, 60), (80, 80), (300, 100)] {
            let mut page = page(width);
            page.heading(&"heading ".repeat(20));
            page.text(&"some words and `a few others` ".repeat(30));
            page.item(4, "mark", &"some words ".repeat(30));
            let text = page.finish();
            let longest = text.lines().map(super::width).max().unwrap_or(0);
            assert!(longest <= most && longest > most - 12, "{width}: {longest}");
        }
    }

    #[test]
    fn commands_go_on_in_the_next_line() {
        let words = "roce-analyze some-capture.pcapng --bin 100us --link-rate 25G";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let mut page = page(60);
        page.command(&words);
        assert_eq!(
            page.finish(),
            " $ roce-analyze some-capture.pcapng --bin 100us \\\n      --link-rate 25G\n"
        );
    }

    #[test]
    fn tables_give_way_in_their_first_column() {
        let cell = |text: &str| (text.to_owned(), Tone::Plain);
        let rows = vec![
            vec![
                cell(&"long ".repeat(20)),
                cell("12"),
                (String::from("yes"), Tone::Good),
            ],
            vec![cell("short"), cell("1,000,000"), cell("no")],
        ];
        let mut page = page(60);
        page.table(&["what", "truth", "agrees"], &rows);
        let text = page.finish();
        assert!(text.lines().all(|line| super::width(line) <= 60), "{text}");
        assert!(text.contains("1,000,000"), "{text}");
    }

    #[test]
    fn color_is_only_there_when_wanted() {
        let write = |color| {
            let mut page = Page::new(Style {
                color,
                ..Style::default()
            });
            page.heading("one two");
            page.command(&["ls".to_owned()]);
            page.finish()
        };
        assert_eq!(write(false), " one two\n $ ls\n");
        assert!(write(true).contains("\u{1b}["));
    }
}
