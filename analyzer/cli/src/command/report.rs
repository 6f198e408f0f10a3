//! `report`: the HTML page of results that earlier runs wrote with `-o`, of one folder or of several hosts' together.

mod joined;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use roce_model::text::clean;
use roce_pipeline::folder::{PAGE, Whole};
use roce_pipeline::stored;
use roce_report::HtmlReport;

use crate::output::messages::sink_error;

/// What to make a page of.
#[derive(Args, Debug)]
#[command(
    after_help = "Of several folders the rows are joined, not analysed again: verdicts and episodes remain those of each folder and say \
which. Traffic that several folders hold is drawn once, as the one saw it that saw most; totals are the sums of all."
)]
pub(crate) struct Report {
    /// Folders that -o wrote
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,

    /// Where the page goes [default: DIR/report.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the page.
pub(crate) fn report(arguments: &Report) -> anyhow::Result<ExitCode> {
    let path = match (&arguments.output, arguments.dirs.as_slice()) {
        (Some(path), _) => path.clone(),
        (None, [dir]) => dir.join(PAGE),
        (None, _) => bail!("of several folders one page: which file?\nhint: -o FILE"),
    };
    for dir in &arguments.dirs {
        if !stored::is_dataset(dir) {
            bail!(
                "{}: holds no results\nhint: `roce-analyze CAPTURE -o DIR` writes them",
                dir.display()
            );
        }
    }
    let (out, whole) = Whole::create(&path)?;
    let mut page = HtmlReport::new(out);
    match arguments.dirs.as_slice() {
        [dir] => stored::replay(dir, &mut page).map_err(sink_error)?,
        dirs => joined::replay(&named(dirs), &mut page)?,
    }
    whole.finish(Ok(())).map_err(sink_error)?;
    writeln!(anstream::stdout(), "{}", clean(&path.to_string_lossy()))?;
    Ok(ExitCode::SUCCESS)
}

/// Folders with what they are called beside each other: by their last part where that tells them apart.
fn named(dirs: &[PathBuf]) -> Vec<(String, &Path)> {
    let last = |dir: &PathBuf| dir.file_name().map(std::ffi::OsStr::to_os_string);
    let named = dirs.iter().map(|dir| {
        let alike = dirs.iter().filter(|other| last(other) == last(dir)).count();
        let name = last(dir).filter(|_| alike == 1).unwrap_or_else(|| dir.into());
        (name.to_string_lossy().into_owned(), dir.as_path())
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_called_so_that_they_are_told_apart() {
        let dirs = ["a/out", "b/out", "c/h7", ".."].map(PathBuf::from);
        let names: Vec<String> = named(&dirs).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a/out", "b/out", "h7", ".."]);
    }
}
