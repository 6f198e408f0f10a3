//! The formats of standard output. Each command names those that it has.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A format of standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
    /// A JSON object on each line.
    Jsonl,
    /// Comma-separated values.
    Csv,
    /// One HTML page.
    Html,
    /// A trace in Perfetto's binary form.
    Perfetto,
    /// A trace in Chrome's Trace Event Format.
    Chrome,
    /// Prometheus' text format.
    Prometheus,
    /// OpenMetrics.
    Openmetrics,
    /// Nothing: to measure the analysis alone.
    None,
}

impl Format {
    /// All formats.
    const ALL: [Self; 10] = [
        Self::Text,
        Self::Json,
        Self::Jsonl,
        Self::Csv,
        Self::Html,
        Self::Perfetto,
        Self::Chrome,
        Self::Prometheus,
        Self::Openmetrics,
        Self::None,
    ];

    /// Its name on the command line, and what it is.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text", "For people"),
            Self::Json => ("json", "One JSON document"),
            Self::Jsonl => ("jsonl", "A JSON object on each line"),
            Self::Csv => ("csv", "Comma-separated values, the names of the columns first"),
            Self::Html => ("html", "One HTML page, with everything in it"),
            Self::Perfetto => (
                "perfetto",
                "A trace for ui.perfetto.dev, in Perfetto's binary form",
            ),
            Self::Chrome => ("chrome", "A trace as JSON in Chrome's Trace Event Format"),
            Self::Prometheus => ("prometheus", "Prometheus' text format 0.0.4"),
            Self::Openmetrics => ("openmetrics", "OpenMetrics 1.0"),
            Self::None => ("none", "Nothing: to measure the analysis alone"),
        }
    }
}

/// The parser of a command that has these formats.
pub(crate) fn formats(known: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let values = known.iter().map(|format| {
        let (name, help) = format.words();
        PossibleValue::new(name).help(help).hide(*format == Format::None)
    });
    PossibleValuesParser::new(values).map(|name| {
        let named = Format::ALL.into_iter().find(|format| format.words().0 == name);
        // The parser lets only names of formats through.
        named.unwrap_or(Format::Text)
    })
}

/// The parser of a command that prints text for people, or a JSON document.
pub(crate) fn text_or_json() -> impl TypedValueParser<Value = Format> {
    formats(&[Format::Text, Format::Json])
}
