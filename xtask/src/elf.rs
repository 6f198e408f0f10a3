//! Parts of an ELF file that make a program, for comparing two of them: the contents of sections and the
//! targets of relocations. Names of symbols are left out, because they hash the folder of the sources.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};

/// Sections by name. Of a relocation section, a text line for each relocation.
pub(crate) type Sections = BTreeMap<String, Vec<u8>>;

// Section types of the ELF specification.
const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const REL: u32 = 9;

/// A processor that programs are built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
}

/// Needs of a program from the system that it runs on.
pub(crate) struct Needs {
    pub(crate) machine: Machine,
    /// The highest version of the GNU C library whose symbols it needs: (2, 34). `None`: it needs none.
    pub(crate) glibc: Option<(u32, u32)>,
    /// Names of shared libraries; none of a static program.
    pub(crate) libraries: Vec<String>,
}

/// Needs of a 64-bit little-endian program.
pub(crate) fn needs(file: &[u8]) -> Result<Needs> {
    let all = read_sections(file)?;
    // Numbers of the ELF specification's e_machine.
    let machine = match number(file, 18, 2)? {
        62 => Machine::X86_64,
        183 => Machine::Aarch64,
        other => anyhow::bail!("programs of machine {other} are not known"),
    };
    // Names of versions and libraries are texts of the dynamic symbols (GNU, .gnu.version_r and DT_NEEDED).
    let texts = all.iter().find(|section| section.name == ".dynstr");
    let texts = texts.map_or(&[][..], |section| section.bytes);
    let texts = || {
        let texts = texts.split(|byte| *byte == 0);
        texts.filter_map(|text| std::str::from_utf8(text).ok())
    };
    let versions = texts().filter_map(|text| {
        let mut parts = text.strip_prefix("GLIBC_")?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    let libraries = texts().filter(|text| text.contains(".so."));
    Ok(Needs {
        machine,
        glibc: versions.max(),
        libraries: libraries.map(str::to_owned).collect(),
    })
}

struct Section<'a> {
    name: String,
    kind: u32,
    bytes: &'a [u8],
}

fn number(bytes: &[u8], at: usize, length: usize) -> Result<u64> {
    let part = bytes.get(at..at + length).context("the file is cut")?;
    Ok(part.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

fn place(bytes: &[u8], at: usize) -> Result<usize> {
    usize::try_from(number(bytes, at, 8)?).context("the file is too large")
}

fn read_sections(file: &[u8]) -> Result<Vec<Section<'_>>> {
    anyhow::ensure!(
        file.starts_with(b"\x7fELF\x02\x01"),
        "it is no 64-bit little-endian ELF file"
    );
    let (table, count) = (place(file, 40)?, number(file, 60, 2)?);
    let names = number(file, 62, 2)?;
    let header = |index: u64| -> usize { table + 64 * usize::try_from(index).unwrap_or(usize::MAX / 128) };
    let contents = |at: usize| -> Result<&[u8]> {
        let (start, length) = (place(file, at + 24)?, place(file, at + 32)?);
        file.get(start..start + length).context("the file is cut")
    };
    let texts = contents(header(names))?;
    let mut all = Vec::new();
    for index in 0..count {
        let at = header(index);
        let name = texts
            .get(usize::try_from(number(file, at, 4)?)?..)
            .unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let kind = u32::try_from(number(file, at + 4, 4)?)?;
        all.push(Section {
            name: String::from_utf8_lossy(name).into_owned(),
            kind,
            // A section without contents has its place beyond the file.
            bytes: contents(at).unwrap_or_default(),
        });
    }
    Ok(all)
}

/// Reads the sections of a 64-bit little-endian object.
pub(crate) fn sections(file: &[u8]) -> Result<Sections> {
    let all = read_sections(file)?;
    let symbols = all
        .iter()
        .find(|section| section.kind == SYMTAB)
        .map_or(&[][..], |section| section.bytes);
    let mut sections = Sections::new();
    for section in &all {
        match section.kind {
            PROGBITS => sections.insert(section.name.clone(), section.bytes.to_vec()),
            REL => sections.insert(section.name.clone(), relocations(section.bytes, symbols, &all)?),
            _ => None,
        };
    }
    Ok(sections)
}

/// Relocations: place, type and target of each.
fn relocations(bytes: &[u8], symbols: &[u8], all: &[Section<'_>]) -> Result<Vec<u8>> {
    let mut text = String::new();
    for entry in bytes.chunks_exact(16) {
        let (at, info) = (number(entry, 0, 8)?, number(entry, 8, 8)?);
        let symbol = usize::try_from(info >> 32)? * 24;
        let section = usize::try_from(number(symbols, symbol + 6, 2)?)?;
        let name = all.get(section).map_or("", |section| &section.name);
        let value = number(symbols, symbol + 8, 8)?;
        writeln!(text, "{at:x} {} {name} {value:x}", info & 0xffff_ffff)?;
    }
    Ok(text.into_bytes())
}
