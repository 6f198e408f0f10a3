//! Standard output of commands about the fabric: texts whose names are cleaned, and documents that are escaped.

use std::io::Write as _;

/// Writes a whole text.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
