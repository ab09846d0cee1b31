//! The `lanekeeper` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    lanekeeper::cli::main(std::env::args_os(), std::env::vars_os())
}
