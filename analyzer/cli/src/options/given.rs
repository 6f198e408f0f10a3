//! Options in layers: the configuration file, a recorded run, the command line. Each layer is a list of arguments, and a later one wins.

use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, FromArgMatches};

/// Matches of the arguments from which options were read, the weakest layer first.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenOptions(Vec<ArgMatches>);

impl FromArgMatches for GivenOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(vec![matches.clone()]))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.push(matches.clone());
        Ok(())
    }
}

impl Args for GivenOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl GivenOptions {
    /// Forgets the value of an option of one path.
    #[cfg(feature = "live")]
    pub(crate) fn forget_path(&mut self, option: &str) {
        for matches in &mut self.0 {
            // An option that was not given has no value to forget.
            let _ = matches.try_remove_one::<std::path::PathBuf>(option);
        }
    }

    /// The layers, the weakest first.
    pub(crate) fn layers(&self) -> &[ArgMatches] {
        &self.0
    }

    /// The value of the option `id`, as an argument of the option `name`.
    pub(crate) fn argument(&self, id: &str, name: &str) -> Option<OsString> {
        let value = self.0.last()?.get_raw(id)?.next_back()?;
        Some(argument(name, value))
    }
}

/// `--NAME=VALUE`
pub(crate) fn argument(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut argument = OsString::from(format!("--{name}="));
    argument.push(value);
    argument
}
