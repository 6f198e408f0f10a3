//! How the document is laid out: the upper levels over lines, each object in a list on one line.
//! The document decides what is written.

use std::io::{self, Write};

use roce_model::text::{clean, escape_json};
use serde_json::ser::Formatter;

/// Objects deeper than this are on one line wherever they are.
const DEEPEST: usize = 3;

/// Lays out over lines down to the objects of lists, these on one line each.
#[derive(Default)]
pub(super) struct Layout {
    /// Names from outside are replaced where they would steer who shows them, not only escaped: for a reader that shows them as they are.
    replaces: bool,
    /// For each open container, whether it is an array.
    open: Vec<bool>,
    /// How many containers were open when the one-line part began.
    line: Option<usize>,
    /// True if the container being closed has had a value.
    filled: bool,
}

impl Layout {
    /// For the page, whose script shows what it parses.
    pub(super) fn for_page() -> Self {
        Self {
            replaces: true,
            ..Self::default()
        }
    }

    /// For an object that is written by itself as one of a list of the document.
    pub(super) fn for_row() -> Self {
        Self {
            open: vec![false, true],
            ..Self::default()
        }
    }

    fn begin(&mut self, array: bool) {
        let in_list = self.open.last() == Some(&true);
        if self.line.is_none() && (in_list || self.open.len() >= DEEPEST) {
            self.line = Some(self.open.len());
        }
        self.open.push(array);
        self.filled = false;
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.open.pop();
        if self.line.is_none() {
            if self.filled {
                self.indent(out)?;
            }
        } else if self.line == Some(self.open.len()) {
            self.line = None;
        }
        self.filled = true;
        out.write_all(bracket)
    }

    fn next<W: ?Sized + Write>(&self, out: &mut W, first: bool) -> io::Result<()> {
        match (self.line, first) {
            (Some(_), true) => Ok(()),
            (Some(_), false) => out.write_all(b", "),
            (None, true) => self.indent(out),
            (None, false) => {
                out.write_all(b",")?;
                self.indent(out)
            }
        }
    }

    fn indent<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        for _ in 0..self.open.len() {
            out.write_all(b"  ")?;
        }
        Ok(())
    }
}

impl Formatter for Layout {
    /// Names from outside reach terminals in this document, too.
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let safe = if self.replaces {
            clean(fragment)
        } else {
            escape_json(fragment)
        };
        out.write_all(safe.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(true);
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(false);
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}
