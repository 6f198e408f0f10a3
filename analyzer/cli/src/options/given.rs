//! Options in layers: the configuration file, a recorded run, the command line. Each layer is a list of arguments, and a later one wins.

use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser};

use crate::options::arguments::Shape;
use crate::options::processes::ProcessOptions;

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

/// A command line of options that shape a run, and nothing else.
#[derive(Parser, Debug)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct ShapeArguments {
    #[command(flatten)]
    shape: Shape,
}

/// Options that shape a run and take a value.
pub(crate) fn valued_options() -> Vec<clap::Arg> {
    let command = ShapeArguments::command();
    let options = command.get_arguments();
    options
        .filter(|option| option.get_action().takes_values())
        .cloned()
        .collect()
}

impl Shape {
    /// Parses arguments such as `--bin=1ms`.
    ///
    /// # Errors
    /// When they are not understood.
    pub(crate) fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Ok(ShapeArguments::try_parse_from(words)?.shape)
    }

    /// These options; where one is not given, that of `base`.
    ///
    /// # Errors
    /// None: arguments that were understood once are so again.
    pub(crate) fn over(&self, mut base: Self) -> Result<Self, clap::Error> {
        // A flag that is not given is false, and would end that of the base.
        let (is_full, is_quiet) = (base.full, base.quiet);
        if self.processes != ProcessOptions::default() {
            // Processes are chosen together.
            base.processes = ProcessOptions::default();
        }
        if self.config.is_some() {
            base.recorded_config = None;
        }
        for matches in &self.given.0 {
            base.update_from_arg_matches(matches)?;
        }
        base.full |= is_full;
        base.quiet |= is_quiet;
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(words: &[&str]) -> Shape {
        Shape::from_words(words.iter().map(OsString::from)).unwrap()
    }

    #[test]
    fn later_layers_win_option_by_option() {
        let file = shape(&["--bin=1ms", "--top=5", "--lag=a,b", "--lag=c,d"]);
        let recorded = shape(&["--top=7", "--full", "--pid=4", "--training-log=x.log"]);
        let own = shape(&["--lag=e,f", "--comm=ib_write_bw", "--quiet"]);
        let all = own.over(recorded.over(file).unwrap()).unwrap();
        assert_eq!((all.bin.map(|bin| bin.0), all.top), (Some(1_000_000), Some(7)));
        // The list of the command line replaces that of the file, as do its processes.
        assert_eq!(all.lag, [["e", "f"]]);
        assert_eq!(all.processes, shape(&["--comm=ib_write_bw"]).processes);
        assert!(all.full && all.quiet);
        // The layers go on as one.
        let again = all.over(shape(&["--top=1", "--threads=2"])).unwrap();
        assert_eq!((again.top, again.threads), (Some(7), Some(2)));
    }

    #[test]
    #[cfg(feature = "live")]
    fn a_forgotten_path_is_no_option() {
        let mut recorded = shape(&["--training-log=x.log", "--top=7"]);
        recorded.given.forget_path("training_log");
        let all = recorded.over(Shape::default()).unwrap();
        assert_eq!((all.training_log, all.top), (None, Some(7)));
    }
}
