//! Writes the page of tables and columns to standard output; where it is kept is left to who calls it.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().write_all(roce_report::schema::markdown().as_bytes())
}
