//! A recorded live run again: the recording in place of its folder, with the options that the run had.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use clap::{Parser, Subcommand};
use roce_capture::{Options, Reader};
use roce_model::RecordingStart;
use roce_model::text::clean;

use crate::command::live::Live;
use crate::options::arguments::{RunOptions, Shape};
use crate::options::config::without_configuration;
use crate::options::old_words::replaced;
use crate::output::messages;

/// The command line of a recorded run: the other commands record nothing.
#[derive(Parser, Debug)]
#[command(name = "roce-analyze", version, args_conflicts_with_subcommands = true)]
struct RecordedCommand {
    #[command(subcommand)]
    command: Recorder,
}

#[derive(Subcommand, Debug)]
enum Recorder {
    /// Analyse devices while they are captured from
    Live(Box<Live>),
}

/// The run that is to be replayed, when the only argument is the folder of a recorded one: with the options that it had, where
/// the command line says nothing else; and what is recorded of it.
///
/// # Errors
/// When the recording cannot be read.
pub(crate) fn recorded(arguments: &RunOptions) -> anyhow::Result<Option<(RunOptions, RecordingStart)>> {
    let [dir] = arguments.captures.as_slice() else {
        return Ok(None);
    };
    let path = dir.join(RecordingStart::FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let recorded = head(&path)?;
    if recorded.arguments.first().is_none_or(|command| command != "live") {
        return Err(anyhow!("{}: not the recording of a live run", path.display()));
    }
    if let Some(folder) = named_cgroup(&recorded.arguments) {
        bail!(
            "{}: its command line names the cgroup {folder:?}, not its number",
            path.display()
        );
    }
    let (arguments_of_run, config) = without_configuration(&recorded.arguments);
    let words = std::iter::once("roce-analyze").chain(arguments_of_run);
    // A recording may be of a version with other spellings.
    let (words, _) = replaced(words.map(OsString::from).collect());
    let command = RecordedCommand::try_parse_from(words).map_err(|error| {
        // Its first line says what is wrong; the words in it come from the recording.
        let error = error.to_string();
        let error = clean(error.lines().next().unwrap_or_default());
        anyhow!("{}: its command line is not understood: {error}", path.display())
    })?;
    let Recorder::Live(live) = command.command;
    let mut shape = without_files(live.shape, &path, &arguments.shape);
    left_out(
        "--inventory",
        live.fabric.inventory.as_deref(),
        arguments.fabric.as_deref(),
        &path,
    );
    shape.recorded_config = config.map(str::to_owned);
    let replayed = RunOptions {
        captures: vec![path],
        shape: arguments.shape.over(shape)?,
        names: arguments.names.clone().or(live.names),
        ..arguments.clone()
    };
    Ok(Some((replayed, recorded)))
}

/// Options of a recorded run, without those that name files. The maker of a recording must not choose
/// which files of this host are read. A warning names the omitted files, unless the command line has its
/// own.
fn without_files(mut recorded: Shape, path: &Path, own: &Shape) -> Shape {
    let files = [
        ("--config", &recorded.config, &own.config),
        ("--training-log", &recorded.training_log, &own.training_log),
    ];
    for (option, recorded, own) in files {
        left_out(option, recorded.as_deref(), own.as_deref(), path);
    }
    recorded.given.forget_path("config");
    recorded.given.forget_path("training_log");
    (recorded.config, recorded.training_log) = (None, None);
    recorded
}

/// Warns of a file of a recorded run that is omitted, unless the command line has its own.
fn left_out(option: &str, recorded: Option<&Path>, own: Option<&Path>, path: &Path) {
    if let (Some(file), None) = (recorded, own) {
        let file = file.to_string_lossy();
        let file = clean(&file);
        messages::warn(
            &path.display().to_string(),
            &format!(
                "the run had {option} {file}, which a recording cannot choose; hint: give {option} again"
            ),
        );
    }
}

/// A cgroup of a recorded command line that is no number. Numbers are recorded; a folder would be looked up on this host.
fn named_cgroup(words: &[String]) -> Option<&str> {
    let values = words.iter().enumerate().filter_map(|(at, word)| {
        let next = || words.get(at + 1).map(String::as_str);
        word.strip_prefix("--cgroup=")
            .or_else(|| (word == "--cgroup").then(next).flatten())
    });
    values.into_iter().find(|value| value.parse::<u64>().is_err())
}

/// Notes before the first frame.
fn head(path: &Path) -> anyhow::Result<RecordingStart> {
    // Larger than any configuration, whose text is part of it.
    let options = Options {
        block_bytes: 4 << 20,
        ..Options::default()
    };
    let mut reader = Reader::open(path, &options)?;
    let unreadable = || format!("{}: not a recording of this version", path.display());
    let batch = reader.next_batch()?.with_context(unreadable)?;
    let note = batch
        .notes()
        .iter()
        .find(|note| note.kind == RecordingStart::BLOCK);
    note.and_then(|note| RecordingStart::decode(batch.note(note)))
        .with_context(unreadable)
}
