//! `cargo xtask schema`: the page that describes every column, from the description that the code uses.

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, output};

pub(crate) const ABOUT: &str = "write docs/schema.md from the tables' description";
pub(crate) const ARGUMENTS: &str = "[--check]";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let check = match arguments {
        [] => false,
        [option] if option == "--check" => true,
        _ => bail!("the arguments are not understood\nhint: cargo xtask schema {ARGUMENTS}"),
    };
    let mut example = workspace.cargo([
        "run",
        "--quiet",
        "--package",
        "roce-report",
        "--example",
        "schema",
    ]);
    let page = output(&mut example)?;
    let path = workspace.root.join("docs/schema.md");
    if check {
        let stored =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if stored != page {
            bail!("docs/schema.md is not what the tables say\nhint: run `cargo xtask schema`");
        }
        println!("   docs/schema.md says what the tables say");
        return Ok(());
    }
    std::fs::write(&path, &page).with_context(|| format!("cannot write {}", path.display()))?;
    println!("docs/schema.md: {} lines", page.lines().count());
    Ok(())
}
