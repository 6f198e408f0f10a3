//! The JSON array of Chrome's Trace Event Format: one object in each line, written while it comes.
//!
//! Phases: M names processes and tracks, X is a slice, i an instant, C a counter's value, s and f the ends of an arrow. Times are
//! microseconds with three decimals: exact as text. A viewer that reads them as doubles rounds to 0.25 us, since they count from the epoch.

use std::fmt;
use std::io::{self, Write};

use roce_model::{Evidence, Fact, Span, Time};
use serde_json::{Map, Value, json};

use super::track::{Slice, Track, bounded};

/// Length of an instant at which an arrow ends: viewers bind arrows to slices.
const ARROW_LENGTH: Span = Span(1);

#[derive(Debug)]
pub(super) struct Chrome<W> {
    out: W,
    is_first: bool,
}

/// Nanoseconds, written in microseconds with all their digits.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

impl<W: Write> Chrome<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, is_first: true }
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }

    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.out.write_all(b"[")
    }

    pub(super) fn process(&mut self, process: &Track, name: &str) -> io::Result<()> {
        let pid = process.pid;
        let name = json!(name);
        self.line(&format_args!(
            r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":{name}}}}}"#
        ))?;
        self.line(&format_args!(
            r#"{{"ph":"M","name":"process_sort_index","pid":{pid},"args":{{"sort_index":{pid}}}}}"#
        ))
    }

    pub(super) fn track(&mut self, track: &Track) -> io::Result<()> {
        let (pid, tid) = (track.pid, track.number);
        let name = json!(track.name);
        self.line(&format_args!(
            r#"{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},"args":{{"name":{name}}}}}"#
        ))?;
        self.line(&format_args!(
            r#"{{"ph":"M","name":"thread_sort_index","pid":{pid},"tid":{tid},"args":{{"sort_index":{tid}}}}}"#
        ))
    }

    pub(super) fn slice(&mut self, track: &Track, slice: &Slice<'_>) -> io::Result<()> {
        let (pid, tid) = (track.pid, track.number);
        let time = Micros(slice.start.0);
        let name = json!(slice.name);
        let category = slice.category;
        let args = object(slice.facts);
        let has_arrows = !slice.out.is_empty() || !slice.into.is_empty();
        let length = slice.end.map(|end| end.since(slice.start));
        match length.or(has_arrows.then_some(ARROW_LENGTH)) {
            Some(length) => {
                let length = Micros(length.0);
                self.line(&format_args!(
                    r#"{{"ph":"X","name":{name},"cat":"{category}","pid":{pid},"tid":{tid},"ts":{time},"dur":{length},"args":{args}}}"#
                ))?;
            }
            None => self.line(&format_args!(
                r#"{{"ph":"i","s":"t","name":{name},"cat":"{category}","pid":{pid},"tid":{tid},"ts":{time},"args":{args}}}"#
            ))?,
        }
        for arrow in slice.out {
            self.line(&format_args!(
                r#"{{"ph":"s","name":"cause","cat":"cause","id":{arrow},"pid":{pid},"tid":{tid},"ts":{time}}}"#
            ))?;
        }
        for arrow in slice.into {
            self.line(&format_args!(
                r#"{{"ph":"f","bp":"e","name":"cause","cat":"cause","id":{arrow},"pid":{pid},"tid":{tid},"ts":{time}}}"#
            ))?;
        }
        Ok(())
    }

    pub(super) fn value(&mut self, counter: &Track, time: Time, value: f64) -> io::Result<()> {
        let (pid, time) = (counter.pid, Micros(time.0));
        let name = json!(counter.name);
        let value = json!(value);
        self.line(&format_args!(
            r#"{{"ph":"C","name":{name},"pid":{pid},"ts":{time},"args":{{"value":{value}}}}}"#
        ))
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()
    }

    fn line(&mut self, text: &fmt::Arguments<'_>) -> io::Result<()> {
        let separator: &[u8] = if self.is_first { b"\n" } else { b",\n" };
        self.is_first = false;
        self.out.write_all(separator)?;
        self.out.write_fmt(*text)
    }
}

/// The facts of an event as an object. Numbers that are not finite are null.
fn object(facts: &Evidence) -> Value {
    let entries = facts.0.iter().map(|(name, fact)| {
        let value = match fact {
            Fact::Count(value) => json!(value),
            Fact::Number(value) => json!(value),
            Fact::Text(text) => json!(bounded(text)),
        };
        ((*name).to_owned(), value)
    });
    Value::Object(entries.collect::<Map<_, _>>())
}
