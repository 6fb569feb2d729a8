//! The `flowlog` command: arguments, logging, wiring, exit code.

mod cli;

use std::io::{Write, stderr};
use std::process::ExitCode;

use clap::Parser;

use cli::{Command, Flowlog};

fn main() -> ExitCode {
    let arguments = Flowlog::parse();
    cli::logging::start(&arguments.log, arguments.command.voice());
    cli::open_files::raise();
    let outcome = match arguments.command {
        Command::Run(run) => cli::run::run(&run),
        Command::Observe(observe) => cli::observe::observe(&observe),
        Command::Check(check) => cli::check::check(&check),
        Command::Cat(cat) => cli::cat::cat(&cat),
        Command::Verify(verify) => cli::verify::verify(&verify),
        Command::Replay(replay) => cli::replay::replay(&replay),
        Command::Explain(explain) => cli::explain::explain(&explain),
        Command::Estimate(estimate) => cli::estimate::estimate(&estimate),
        Command::Status(status) => cli::status::status(&status),
        Command::Top(top) => cli::top::top(&top),
        Command::Migrate(migrate) => cli::migrate::migrate(&migrate),
        Command::Interfaces(interfaces) => cli::interfaces::interfaces(&interfaces),
        Command::Schema(schema) => cli::schema::schema(&schema),
        Command::Completions(completions) => cli::completions::completions(&completions),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do when even this cannot be written.
            let _ = writeln!(stderr(), "flowlog: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and what it was caused by, each once: many name their cause themselves.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        said if said.contains(&cause) => text,
        said => format!("{said}: {cause}"),
    })
}
