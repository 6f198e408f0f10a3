//! The step `glibc`: the program runs with the C library of Ubuntu 22.04, whatever this machine has.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::elf::needs;

/// The C library of Ubuntu 22.04, the oldest system that the program is for.
const OLDEST: (u32, u32) = (2, 35);

/// Fails if the program needs a symbol of a newer library.
pub(crate) fn check(program: &Path) -> Result<()> {
    let file = fs::read(program).with_context(|| program.display().to_string())?;
    let Some((major, minor)) = needs(&file)?.glibc else {
        println!("{} needs no glibc", program.display());
        return Ok(());
    };
    if (major, minor) > OLDEST {
        bail!(
            "{} needs glibc {major}.{minor}; Ubuntu 22.04 has {}.{}\nhint: objdump -T PROGRAM names the symbols",
            program.display(),
            OLDEST.0,
            OLDEST.1
        );
    }
    println!("{} needs glibc {major}.{minor} or newer", program.display());
    Ok(())
}
