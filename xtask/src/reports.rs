//! `cargo xtask reports`: the HTML pages of some demos, in `reports/`; with `--screenshots` also the
//! pictures of the documents.

use anyhow::{Context, Result, bail};

use crate::browser::{Browser, PAGES};
use crate::workspace::{Workspace, output};

pub(crate) const ABOUT: &str = "write reports/*.html from the captures of demos";
pub(crate) const ARGUMENTS: &str = "[--screenshots]";

/// Start time of the runs in the reports, so that they give the same bytes again: 2026-01-01, as in the
/// captures.
const BEGAN: &str = "1767225600";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let pictures = match arguments {
        [] => false,
        [option] if option == "--screenshots" => true,
        _ => bail!("`cargo xtask reports` takes {ARGUMENTS}"),
    };
    for (name, arguments) in PAGES {
        // Without Parquet: it is not needed, and takes minutes to build.
        let package = [
            "--quiet",
            "--locked",
            "--package",
            "roce-analyze",
            "--no-default-features",
        ];
        let mut command = workspace.cargo(["run"]);
        command
            .args(package)
            .args(["--", "--format", "html"])
            .args(arguments)
            .env("SOURCE_DATE_EPOCH", BEGAN)
            .current_dir(&workspace.root);
        let page = output(&mut command)?;
        let folder = workspace.root.join("reports");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join(format!("{name}.html"));
        std::fs::write(&path, &page).with_context(|| format!("cannot write {}", path.display()))?;
        println!("reports/{name}.html: {} kB", page.len() / 1000);
    }
    if pictures {
        Browser::find(workspace)?.photograph(workspace)?;
    }
    Ok(())
}
