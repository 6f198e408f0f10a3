//! The page: no script, nothing from elsewhere. All texts come from datasets, and are escaped.

use std::fmt::Write as _;

use roce_report::markup::{STYLE, escape};
use serde_json::Value;

use super::runs::Runs;
use super::sections::{ChosenRows, Form, Section, ShownColumn};
use crate::command::query::{Answer, Cell};

/// Style of this page beside that of all pages.
const OWN_STYLE: &str = include_str!("page.css");

/// Content of the page.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The dataset's path.
    pub(super) dataset: &'a str,
    /// The answer about all of it.
    pub(super) summary: &'a Answer,
    /// Sections with their rows.
    pub(super) parts: &'a [(&'a Section, ChosenRows<'a>)],
    /// Runs with their pages.
    pub(super) runs: &'a Runs,
}

impl Page<'_> {
    /// The page's text.
    pub(super) fn text(&self) -> String {
        let mut page = String::with_capacity(1 << 16);
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"><title>Fleet: {}</title>\n<style>\n{STYLE}{OWN_STYLE}</style></head>\n<body><main>\n\
             <h1>The fleet's network</h1>\n{}{}",
            escape(self.dataset),
            self.verdict(),
            self.about(),
        );
        page.push_str("<nav>");
        for (section, chosen) in self.parts {
            let _ = write!(
                page,
                "<a href=\"#{}\">{} <b>{}</b></a>",
                section.question, section.heading, chosen.telling
            );
        }
        page.push_str("</nav>\n");
        for (section, chosen) in self.parts {
            self.section(&mut page, section, chosen);
        }
        page.push_str("</main></body></html>\n");
        page
    }

    /// First sentence: the number of rows of each section.
    fn verdict(&self) -> String {
        let said: Vec<String> = self
            .parts
            .iter()
            .filter(|(section, chosen)| chosen.telling > 0 && section.question != "racks")
            .map(|(section, chosen)| {
                let (one, many) = section.counted;
                format!(
                    "<span>{} {}</span>",
                    chosen.telling,
                    if chosen.telling == 1 { one } else { many }
                )
            })
            .collect();
        if said.is_empty() {
            return "<p class=\"verdict\">No congestion, no loss, no bad clock</p>\n".to_owned();
        }
        format!("<p class=\"verdict\">{}</p>\n", said.join(" "))
    }

    /// Runs, hosts and days.
    fn about(&self) -> String {
        let cell = |name: &str| {
            let place = self.summary.place(name);
            let cell = self
                .summary
                .rows
                .first()
                .zip(place)
                .and_then(|(row, place)| row.get(place));
            cell.map_or_else(|| "-".to_owned(), shown)
        };
        let (first, last) = (cell("first_day"), cell("last_day"));
        let days = if first == last {
            first
        } else {
            format!("{first} to {last}")
        };
        let cut = match cell("cut_short").as_str() {
            "0" => String::new(),
            runs => format!(" {runs} of them ended early by an error."),
        };
        format!(
            "<p>{} captures of {} hosts, {}, {} RoCE packets, in {}.{}</p>\n",
            cell("runs"),
            cell("hosts"),
            days,
            cell("roce_packets"),
            escape(self.dataset),
            cut,
        )
    }

    fn section(&self, page: &mut String, section: &Section, chosen: &ChosenRows<'_>) {
        let _ = writeln!(
            page,
            "<section id=\"{}\"><h2>{}</h2>\n<p class=\"lead\">{}</p>",
            section.question, section.heading, section.lead
        );
        if chosen.rows.is_empty() {
            let checked = chosen.answer.rows.len();
            let among = if section.keep.is_empty() {
                String::new()
            } else {
                format!(" among {checked}")
            };
            let _ = writeln!(page, "<p class=\"none\">None{among}.</p></section>");
            return;
        }
        let columns: Vec<(&ShownColumn, usize)> = section
            .columns
            .iter()
            .filter_map(|shown| Some((shown, chosen.answer.place(shown.0)?)))
            // A column without any value says nothing: racks without an inventory.
            .filter(|(_, place)| {
                chosen
                    .rows
                    .iter()
                    .any(|row| !cell(chosen, *row, *place).0.is_null())
            })
            .collect();
        page.push_str("<table><thead><tr>");
        for ((_, title, form), place) in &columns {
            let class = if is_number(chosen, *form, *place) {
                " class=\"n\""
            } else {
                ""
            };
            let _ = write!(page, "<th{class}>{title}</th>");
        }
        page.push_str("</tr></thead><tbody>\n");
        for row in &chosen.rows {
            page.push_str("<tr>");
            for ((_, _, form), place) in &columns {
                let class = if is_number(chosen, *form, *place) {
                    " class=\"n\""
                } else {
                    ""
                };
                let _ = write!(
                    page,
                    "<td{class}>{}</td>",
                    self.cell(cell(chosen, *row, *place), *form)
                );
            }
            page.push_str("</tr>\n");
        }
        page.push_str("</tbody></table>\n");
        let more = chosen.telling - chosen.rows.len();
        if more > 0 {
            let _ = writeln!(
                page,
                "<p class=\"none\">{more} more: <code>roce-analyze query DS {}</code></p>",
                section.question
            );
        }
        page.push_str("</section>\n");
    }

    /// A value as markup.
    fn cell(&self, cell: &Cell, form: Form) -> String {
        let number = cell.0.as_f64();
        match (form, number) {
            _ if cell.0.is_null() => "-".to_owned(),
            (Form::Share, Some(share)) => percent(share),
            (Form::Bar, Some(share)) => format!("{} {}", bar(share), percent(share)),
            (Form::Bytes, Some(bytes)) => roce_spelling::bytes(roce_model::cast::whole(bytes)),
            (Form::Time, Some(ns)) => time(ns),
            (Form::Rate, Some(_)) => format!("{} Mbit/s", shown(cell)),
            (Form::Flag, None) => match cell.0 {
                Value::Bool(true) => "yes".to_owned(),
                _ => "no".to_owned(),
            },
            (Form::Run, None) => {
                let (text, link) = self.runs.link(&cell.shown());
                match link {
                    Some(link) => format!("<a href=\"{}\">{}</a>", escape(&link), escape(&text)),
                    None => escape(&text),
                }
            }
            _ => shown(cell),
        }
    }
}

/// A value as it is; thousands of whole numbers are set apart.
fn shown(cell: &Cell) -> String {
    match cell.0.as_i64() {
        Some(number) => grouped(number),
        None => escape(&cell.shown()),
    }
}

/// A whole number with all its digits, in groups.
fn grouped(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", roce_spelling::count(number.unsigned_abs()))
}

/// A cell of a chosen row.
fn cell<'a>(chosen: &'a ChosenRows<'_>, row: usize, place: usize) -> &'a Cell {
    const ABSENT: &Cell = &Cell(Value::Null);
    chosen
        .answer
        .rows
        .get(row)
        .and_then(|row| row.get(place))
        .unwrap_or(ABSENT)
}

fn is_number(chosen: &ChosenRows<'_>, form: Form, place: usize) -> bool {
    form != Form::Bar
        && chosen
            .answer
            .columns
            .get(place)
            .is_some_and(|column| column.is_number)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// A bar that is full at 1.
fn bar(share: f64) -> String {
    let width = share.clamp(0.0, 1.0) * 60.0;
    format!(
        "<svg viewBox=\"0 0 60 8\" width=\"60\" height=\"8\" aria-hidden=\"true\"><rect class=\"ground\" width=\"60\" height=\"8\"/>\
         <rect class=\"b\" width=\"{width:.1}\" height=\"8\"/></svg>"
    )
}

/// A time with its unit, and its sign.
fn time(ns: f64) -> String {
    match ns.abs() {
        size if size < 1e6 => format!("{:.1} us", ns / 1e3),
        size if size < 1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.1} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests;
