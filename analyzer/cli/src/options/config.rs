//! The configuration file (`--config`): defaults of options, and thresholds of the findings. Values have the same form
//! as on the command line; what is given there is stronger. Applying the thresholds is left to `settings`.

use std::error::Error as _;
use std::ops::Range;
use std::path::Path;

use anyhow::anyhow;
use clap::{Arg, ArgAction};
use roce_model::Span;
use toml::de::{DeTable, DeValue};

use crate::options::arguments::{Shape, valued_options};
use crate::options::duration::parse_duration;
use crate::options::given::argument;
use crate::options::nearest::nearest;
use crate::options::training::unreadable;

/// Files larger than this are not read.
const LARGEST: u64 = 1 << 20;

/// Options that no file holds: they are about one run, or name the file itself.
const NOT_IN_FILES: [&str; 4] = ["config", "pid", "comm", "cgroup"];

/// The table of thresholds.
const THRESHOLDS: &str = "thresholds";

/// Contents of a configuration file.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// Its keys as arguments in front of the command line.
    pub(crate) shape: Shape,
    pub(crate) thresholds: Vec<ThresholdSetting>,
    /// The whole text.
    pub(crate) text: String,
}

/// A threshold as in the file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ThresholdSetting {
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: WrittenValue,
    /// `FILE:LINE`, for errors.
    pub(crate) place: String,
}

/// A value as written.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum WrittenValue {
    /// A whole number.
    Whole(u64),
    /// A number with a decimal point.
    Decimal(f64),
    /// A text; of a threshold: a length of time.
    Text(String),
}

impl WrittenValue {
    /// The value as a length of time.
    pub(crate) fn time(&self) -> Option<Span> {
        match self {
            Self::Text(text) => parse_duration(text).ok(),
            Self::Whole(_) | Self::Decimal(_) => None,
        }
    }
}

/// A text with its name, for errors that say the line.
struct ConfigText<'a> {
    path: &'a Path,
    text: &'a str,
}

impl ConfigText<'_> {
    fn place(&self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }
}

impl Config {
    /// Reads the file at `path`; `thresholds` are the names that its table of thresholds may have.
    ///
    /// # Errors
    /// When it cannot be read, is no TOML, has an unknown key, or a value that its key cannot have: with the line.
    pub(crate) fn read(path: &Path, thresholds: &[&str]) -> anyhow::Result<Self> {
        let text =
            roce_files::read_text(path, LARGEST).map_err(|error| unreadable(error, "the configuration"))?;
        Self::parse(path, &text, thresholds)
    }

    /// Parses the text of a configuration that a recording contains; `path` is its name in errors. A training log that it names is left out:
    /// whoever made the recording must not choose which files of this host are read.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub(crate) fn recorded(text: &str, thresholds: &[&str]) -> anyhow::Result<Self> {
        let path = Path::new("the configuration in the recording");
        if text.len() as u64 > LARGEST {
            return Err(anyhow!("{}: larger than {LARGEST} bytes", path.display()));
        }
        let mut config = Self::parse(path, text, thresholds)?;
        config.shape.training_log = None;
        Ok(config)
    }

    /// Parses the text of a file; `path` is its name in errors.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub(crate) fn parse(path: &Path, text: &str, thresholds: &[&str]) -> anyhow::Result<Self> {
        let source = ConfigText { path, text };
        let options = options();
        let is_option = |name: &str| options.iter().any(|option| option.get_long() == Some(name));
        let document = DeTable::parse(text).map_err(|error| {
            let place = error
                .span()
                .map_or_else(|| path.display().to_string(), |span| source.place(&span));
            anyhow!("{place}: {}", error.message())
        })?;
        let mut config = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        for (key, value) in document.get_ref() {
            let (name, place) = (key.get_ref().as_ref(), source.place(&key.span()));
            let value_of = value.get_ref();
            if name == THRESHOLDS {
                let table = value_of
                    .as_table()
                    .ok_or_else(|| anyhow!("{place}: [{THRESHOLDS}] is a table of names and values"))?;
                for (key, value) in table {
                    let place = source.place(&key.span());
                    let name = key.get_ref().replace('-', "_");
                    if !thresholds.contains(&name.as_str()) {
                        let option = name.replace('_', "-");
                        if is_option(&option) {
                            return Err(anyhow!(
                                "{place}: unknown threshold '{}'; hint: '{option}' is an option: write it above [{THRESHOLDS}]",
                                key.get_ref()
                            ));
                        }
                        return Err(unknown(
                            "threshold",
                            key.get_ref(),
                            &place,
                            thresholds.iter().copied(),
                        ));
                    }
                    let value = written(value.get_ref())
                        .ok_or_else(|| anyhow!("{place}: '{name}' is a number, or a time such as \"5ms\""))?;
                    config.thresholds.push(ThresholdSetting { name, value, place });
                }
                continue;
            }
            let option = name.replace('_', "-");
            let Some(option) = options.iter().find(|known| known.get_long() == Some(&*option)) else {
                let threshold = name.replace('-', "_");
                if thresholds.contains(&threshold.as_str()) {
                    return Err(anyhow!(
                        "{place}: unknown key '{name}'; hint: '{threshold}' is a threshold: write it below a line [{THRESHOLDS}]"
                    ));
                }
                let known = options.iter().filter_map(|option| option.get_long());
                return Err(unknown("key", name, &place, known.chain([THRESHOLDS])));
            };
            config.shape = given(option, value_of)
                .and_then(|shape| {
                    shape
                        .over(std::mem::take(&mut config.shape))
                        .map_err(|error| reason(&error))
                })
                .map_err(|error| anyhow!("{place}: {name}: {error}"))?;
        }
        Ok(config)
    }
}

/// Options that a file can hold.
fn options() -> Vec<Arg> {
    let mut options = valued_options();
    options.retain(|option| !option.get_long().is_some_and(|name| NOT_IN_FILES.contains(&name)));
    options
}

/// The value of an option as arguments, understood.
fn given(option: &Arg, value: &DeValue<'_>) -> Result<Shape, String> {
    let texts = if matches!(option.get_action(), ArgAction::Append) {
        let list = value.as_array().map(|list| {
            let texts = list.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<Vec<String>>>()
        });
        list.flatten().ok_or("a list of texts such as [\"eth0,eth1\"]")?
    } else {
        vec![match written(value).ok_or("a text or a number is expected")? {
            WrittenValue::Text(text) => text,
            WrittenValue::Whole(number) => number.to_string(),
            WrittenValue::Decimal(number) => number.to_string(),
        }]
    };
    let name = option.get_long().unwrap_or_default();
    Shape::from_words(texts.iter().map(|text| argument(name, text))).map_err(|error| reason(&error))
}

/// Why an argument is not understood: what its parser says, without the words about a command line.
fn reason(error: &clap::Error) -> String {
    let said = error.source().map(ToString::to_string);
    said.unwrap_or_else(|| error.kind().to_string())
}

/// A value that is a number or a text.
fn written(value: &DeValue<'_>) -> Option<WrittenValue> {
    match value {
        DeValue::String(text) => Some(WrittenValue::Text(text.to_string())),
        DeValue::Integer(number) => {
            let digits = number.as_str().trim_start_matches('+').replace('_', "");
            u64::from_str_radix(&digits, number.radix())
                .ok()
                .map(WrittenValue::Whole)
        }
        DeValue::Float(number) => number
            .as_str()
            .replace('_', "")
            .parse()
            .ok()
            .map(WrittenValue::Decimal),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// An unknown key, with the nearest one that there is.
fn unknown<'a>(what: &str, name: &str, place: &str, known: impl Iterator<Item = &'a str>) -> anyhow::Error {
    let hint = nearest(name, known).map_or_else(String::new, |nearest| {
        format!("; hint: did you mean '{nearest}'?")
    });
    anyhow!("{place}: unknown {what} '{name}'{hint}")
}

/// Option that replaces `--config FILE` in the command line of a recording: it has the text of the file.
#[cfg(feature = "live")]
const CONFIGURATION: &str = "--recorded-config=";

/// A command line with the text of its configuration in place of its name.
#[cfg(feature = "live")]
pub(crate) fn with_configuration(arguments: Vec<String>, text: &str) -> Vec<String> {
    let mut recorded = Vec::with_capacity(arguments.len());
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        let has_value = word.starts_with("--config=");
        if has_value || word == "--config" {
            recorded.push(format!("{CONFIGURATION}{text}"));
            if !has_value {
                words.next();
            }
        } else {
            recorded.push(word);
        }
    }
    recorded
}

/// A recorded command line, and the text of its configuration.
#[cfg(feature = "live")]
pub(crate) fn without_configuration(arguments: &[String]) -> (Vec<&str>, Option<&str>) {
    let mut config = None;
    let mut words = Vec::with_capacity(arguments.len());
    for word in arguments {
        match word.strip_prefix(CONFIGURATION) {
            Some(text) => config = Some(text),
            None => words.push(word.as_str()),
        }
    }
    (words, config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::fail_on::FailOn;
    use crate::options::rate::Rate;
    use roce_model::Span;

    const NAMES: [&str; 3] = ["incast_senders", "pause_share", "episode_quiet"];

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("rack.toml"), text, &NAMES).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn options_have_the_form_of_the_command_line() {
        let config = parse(
            "bin = \"100us\"\nlink-rate = \"100G\"\ndscp-map = \"26=3\"\ndcqcn = \"nvidia\"\ntop = 20\n\
             max_flows = \"1_000\"\nthreads = 2\nfail-on = \"warning\"\nlag = [\"eth0,eth1\"]\nflow = \"service rc\"\n\
             training-log = \"train.log\"\n\
             training-log-pattern = '(?<step>\\d+) (?<total_ms>\\d+)'\n\n\
             [thresholds]\nincast_senders = 5\npause-share = 0.1\nepisode_quiet = \"2ms\"\n",
        )
        .unwrap();
        assert_eq!(config.shape.bin, Some(Span(100_000)));
        assert_eq!(config.shape.link_rate, Some(Rate(100_000_000_000)));
        assert_eq!(config.shape.dscp_map.unwrap().0[26], 3);
        assert_eq!(
            (config.shape.top, config.shape.max_flows, config.shape.threads),
            (Some(20), Some(1_000), Some(2))
        );
        assert_eq!(config.shape.fail_on, FailOn::parse("warning").ok());
        assert_eq!(config.shape.lag, [["eth0", "eth1"]]);
        assert_eq!(config.shape.flow.unwrap().to_string(), "service rc");
        let mut values: Vec<(&str, &WrittenValue)> = config
            .thresholds
            .iter()
            .map(|s| (s.name.as_str(), &s.value))
            .collect();
        values.sort_by_key(|(name, _)| *name);
        assert_eq!(
            values,
            [
                ("episode_quiet", &WrittenValue::Text("2ms".to_owned())),
                ("incast_senders", &WrittenValue::Whole(5)),
                ("pause_share", &WrittenValue::Decimal(0.1)),
            ]
        );
        assert!(parse("").unwrap().thresholds.is_empty());
    }

    #[test]
    fn errors_name_file_line_key_and_the_nearest_known_one() {
        for (text, error) in [
            (
                "bin = \"1ms\"\nlink-rat = \"1G\"",
                "rack.toml:2: unknown key 'link-rat'; hint: did you mean 'link-rate'?",
            ),
            (
                "\n[thresholds]\n\nincast_sender = 3",
                "rack.toml:4: unknown threshold 'incast_sender'; hint: did you mean 'incast_senders'?",
            ),
            (
                "[threshold]\nx = 1",
                "rack.toml:1: unknown key 'threshold'; hint: did you mean 'thresholds'?",
            ),
            (
                "\n\nbin = \"5\"",
                "rack.toml:3: bin: '5' is not a duration such as 100us, 1ms or 1.5s",
            ),
            (
                "incast_senders = 3",
                "rack.toml:1: unknown key 'incast_senders'; hint: 'incast_senders' is a threshold: write it below a line [thresholds]",
            ),
            (
                "[thresholds]\nlink_rate = \"1G\"",
                "rack.toml:2: unknown threshold 'link_rate'; hint: 'link-rate' is an option: write it above [thresholds]",
            ),
            ("top = true", "rack.toml:1: top: a text or a number is expected"),
            (
                "thresholds = 3",
                "rack.toml:1: [thresholds] is a table of names and values",
            ),
            (
                "[thresholds]\npause_share = true",
                "rack.toml:2: 'pause_share' is a number, or a time such as \"5ms\"",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), error);
        }
        // No TOML: the line is said, the words are the parser's.
        let error = parse("bin = \"1ms\"\nwhat is this").unwrap_err();
        assert!(error.starts_with("rack.toml:2: "), "{error}");
        let error = parse("bin = \"1ms\"\nbin = \"2ms\"").unwrap_err();
        assert!(error.starts_with("rack.toml:2: "), "{error}");
    }

    #[test]
    fn numbers_are_not_negative_and_not_beyond_measure() {
        for wrong in [
            "top = -1",
            "top = 99999999999999999999",
            "[thresholds]\nincast_senders = -3",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse("top = 0x10").unwrap().shape.top, Some(16));
    }

    #[test]
    #[cfg(feature = "live")]
    fn configurations_are_recorded_as_text() {
        let line = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let text = "bin = \"5ms\"\n";
        for run in [
            line(&["live", "--config", "a.toml", "-i", "v1"]),
            line(&["live", "--config=a.toml", "-i", "v1"]),
        ] {
            let recorded = with_configuration(run, text);
            assert_eq!(
                without_configuration(&recorded),
                (vec!["live", "-i", "v1"], Some(text))
            );
        }
        let without = line(&["live", "-i", "v1"]);
        assert_eq!(without_configuration(&without), (vec!["live", "-i", "v1"], None));
    }
}
