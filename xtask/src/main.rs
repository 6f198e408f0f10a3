//! The project's own chores, as `cargo xtask NAME`: one file for each of them.
//!
//! Shared parts are `workspace` (where things are, how commands run) and `need` (programs that must be there).
//! Built in seconds, from the standard library and anyhow.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are commands for a person at a terminal"
)]

mod attack;
mod bench;
mod bench_live;
mod browser;
mod captures;
mod demo;
mod deny;
mod ebpf;
mod elf;
mod faults;
mod fleet;
mod fuzz;
mod glibc;
mod golden;
mod metamorphic;
mod need;
mod package;
mod pgo;
mod profile;
mod prometheus;
mod python;
mod reports;
mod schema;
mod seeds;
mod store;
mod test;
mod truth;
mod vm;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;

use crate::workspace::Workspace;

/// One subcommand.
struct Chore {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&Workspace, &[String]) -> Result<()>,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "demo",
        arguments: "",
        about: demo::ABOUT,
        run: demo::run,
    },
    Chore {
        name: "test",
        arguments: test::ARGUMENTS,
        about: test::ABOUT,
        run: test::run,
    },
    Chore {
        name: "browser",
        arguments: "",
        about: browser::ABOUT,
        run: browser::run,
    },
    Chore {
        name: "prometheus",
        arguments: prometheus::ARGUMENTS,
        about: prometheus::ABOUT,
        run: prometheus::run,
    },
    Chore {
        name: "faults",
        arguments: faults::ARGUMENTS,
        about: faults::ABOUT,
        run: faults::run,
    },
    Chore {
        name: "seeds",
        arguments: seeds::ARGUMENTS,
        about: seeds::ABOUT,
        run: seeds::run,
    },
    Chore {
        name: "deny",
        arguments: "",
        about: deny::ABOUT,
        run: deny::run,
    },
    Chore {
        name: "bench",
        arguments: bench::ARGUMENTS,
        about: bench::ABOUT,
        run: bench::run,
    },
    Chore {
        name: "profile",
        arguments: profile::ARGUMENTS,
        about: profile::ABOUT,
        run: profile::run,
    },
    Chore {
        name: "pgo",
        arguments: pgo::ARGUMENTS,
        about: pgo::ABOUT,
        run: pgo::run,
    },
    Chore {
        name: "bench-live",
        arguments: bench_live::ARGUMENTS,
        about: bench_live::ABOUT,
        run: bench_live::run,
    },
    Chore {
        name: "truth",
        arguments: truth::ARGUMENTS,
        about: truth::ABOUT,
        run: truth::run,
    },
    Chore {
        name: "metamorphic",
        arguments: metamorphic::ARGUMENTS,
        about: metamorphic::ABOUT,
        run: metamorphic::run,
    },
    Chore {
        name: "fuzz",
        arguments: fuzz::ARGUMENTS,
        about: fuzz::ABOUT,
        run: fuzz::run,
    },
    Chore {
        name: "attack",
        arguments: attack::ARGUMENTS,
        about: attack::ABOUT,
        run: attack::run,
    },
    Chore {
        name: "captures",
        arguments: "",
        about: captures::ABOUT,
        run: captures::run,
    },
    Chore {
        name: "reports",
        arguments: reports::ARGUMENTS,
        about: reports::ABOUT,
        run: reports::run,
    },
    Chore {
        name: "schema",
        arguments: schema::ARGUMENTS,
        about: schema::ABOUT,
        run: schema::run,
    },
    Chore {
        name: "build-ebpf",
        arguments: ebpf::ARGUMENTS,
        about: ebpf::ABOUT,
        run: ebpf::run,
    },
    Chore {
        name: "vm-test",
        arguments: vm::ARGUMENTS,
        about: vm::ABOUT,
        run: vm::run,
    },
    Chore {
        name: "package",
        arguments: package::ARGUMENTS,
        about: package::ABOUT,
        run: package::run,
    },
    Chore {
        name: "golden",
        arguments: golden::ARGUMENTS,
        about: golden::ABOUT,
        run: golden::run,
    },
];

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let before = arguments.len();
    arguments.retain(|argument| argument != "--yes");
    if arguments.len() < before {
        need::consent();
    }
    let Some((name, rest)) = arguments.split_first() else {
        list();
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        list();
        return ExitCode::SUCCESS;
    }
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        eprintln!("error: there is no chore '{name}'\nhint: `cargo xtask` lists them");
        return ExitCode::from(2);
    };
    match Workspace::find().and_then(|workspace| (chore.run)(&workspace, rest)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    println!("cargo xtask NAME\n");
    for Chore {
        name,
        arguments,
        about,
        ..
    } in CHORES
    {
        println!("  {:<48} {about}", format!("{name} {arguments}"));
    }
    println!("\n  --yes, with any of them: install missing packages without a question");
}
