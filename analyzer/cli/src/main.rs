//! `roce-analyze`: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    roce_analyze::main()
}
