//! The JSON document of an analysis, as the command line prints it, and what it says that the packets do not show.

use anyhow::{Context as _, bail};
use roce_verdict::NO_TROUBLE;
use serde_json::Value;

use crate::command::mcp::arguments::GivenArguments;
use crate::command::mcp::context::ToolContext;
use crate::command::mcp::inputs::Input;
use crate::command::mcp::runner::{MAX_OUTPUT, Output};

/// Flows in a document: those with most trouble, then the most bytes.
pub(super) const MAX_FLOWS: &str = "4000";
/// Findings that say what a capture could not show.
const LIMITS: [&str; 6] = [
    "capture.thin",
    "capture.quality",
    "loss.capture",
    "capture.blind",
    "capture.clock",
    "job.cannot_tell",
];

/// Results of one analysis.
#[derive(Debug)]
pub(super) struct AnalysedInputs {
    pub inputs: Vec<Input>,
    pub document: Value,
    /// The command that prints the document.
    pub command: String,
}

impl AnalysedInputs {
    /// Analyses the inputs that a call names, or reads stored results.
    ///
    /// # Errors
    /// When they cannot be read, or nothing of them.
    pub(super) fn new(
        given: &GivenArguments<'_>,
        flow: Option<&str>,
        context: &mut ToolContext<'_>,
    ) -> anyhow::Result<Self> {
        let inputs = context.inputs(&given.texts("input")?)?;
        if let [input] = inputs.as_slice()
            && context.folder.has_document(input)
        {
            if given.has("merge") || given.has("nccl_log") || flow.is_some() {
                bail!(
                    "{}: has results already: merge, nccl_log and flow are for captures",
                    input.path
                );
            }
            return Self::stored(inputs.clone(), context);
        }
        let mut words: Vec<String> = inputs.iter().map(Input::word).collect();
        let mut all = inputs.clone();
        for (argument, option) in [("merge", "--merge"), ("nccl_log", "--nccl-log")] {
            let names = given.texts(argument)?;
            for name in names {
                let document = context.folder.input(name)?;
                words.extend([option.to_owned(), document.word()]);
                all.push(document);
            }
        }
        words.extend(flow.map(|flow| format!("--flow={flow}")));
        words.extend(["--format", "json", "--json-flows", MAX_FLOWS, "--quiet"].map(str::to_owned));
        let output = context.run(&words, &all)?;
        if output.is_cut {
            bail!(
                "the results have more than {} MB\nhint: ask about fewer captures, or a flow",
                MAX_OUTPUT >> 20
            );
        }
        let document = parsed(&output)?;
        Ok(Self {
            inputs,
            document,
            command: context.command(&words),
        })
    }

    /// The results of a folder that `-o` wrote.
    fn stored(inputs: Vec<Input>, context: &ToolContext<'_>) -> anyhow::Result<Self> {
        let path = inputs
            .first()
            .map_or("run.json".to_owned(), |input| format!("{}/run.json", input.path));
        let text = context.folder.read(&path, MAX_OUTPUT)?;
        let document = serde_json::from_slice(&text).with_context(|| path.clone())?;
        let command = format!(
            "{} && cat {}",
            context.enter(),
            roce_model::text::shell_word(&path)
        );
        Ok(Self {
            inputs,
            document,
            command,
        })
    }

    /// Rows of a table.
    pub(super) fn rows(&self, table: &str) -> &[Value] {
        self.document
            .get(table)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// Findings.
    pub(super) fn findings(&self) -> &[Value] {
        self.rows("findings")
    }

    /// The finding of this id.
    pub(super) fn finding(&self, id: &str) -> Option<&Value> {
        self.findings().iter().find(|finding| text(finding, "id") == id)
    }

    /// The first sentence of the analysis.
    pub(super) fn sentence(&self) -> String {
        let run = self.document.get("run").unwrap_or(&Value::Null);
        text(run, "sentence").to_owned()
    }

    /// The finding that the first sentence is about, chosen as there: a root that acts, else one that hints and is sure, else one that hints.
    pub(super) fn first_root(&self) -> Option<&Value> {
        let roots = || {
            let all = self.findings().iter();
            all.filter(|finding| names(finding, "explained_by").next().is_none())
        };
        let acts = |finding: &&Value| matches!(text(finding, "severity"), "warning" | "critical");
        let hints = |finding: &&Value| {
            text(finding, "severity") == "info" && !NO_TROUBLE.contains(&text(finding, "id"))
        };
        let is_sure = |finding: &&Value| text(finding, "confidence") != "low";
        let root = roots().find(acts);
        let root = root.or_else(|| roots().filter(hints).find(is_sure));
        root.or_else(|| roots().find(hints))
    }

    /// Things that these results do not show.
    pub(super) fn not_shown(&self) -> Vec<String> {
        let mut all = Vec::new();
        let inputs = self
            .document
            .get("run")
            .and_then(|run| run.get("inputs"))
            .and_then(Value::as_array);
        for input in inputs.into_iter().flatten() {
            let name = text(input, "input");
            all.extend(
                input
                    .get("error")
                    .and_then(Value::as_str)
                    .map(|error| format!("{name}: {error}")),
            );
            all.extend(names(input, "warnings").map(|warning| format!("{name}: {warning}")));
        }
        for finding in self
            .findings()
            .iter()
            .filter(|finding| LIMITS.contains(&text(finding, "id")))
        {
            all.push(text(finding, "summary").to_owned());
        }
        let totals = self.document.get("totals").unwrap_or(&Value::Null);
        let count = |name: &str| totals.get(name).and_then(Value::as_u64).unwrap_or_default();
        if count("frames_lost") > 0 {
            all.push(format!(
                "{} frames that the capture lost, as it says itself",
                count("frames_lost")
            ));
        }
        if count("cut_by_snaplen") > 0 {
            all.push(format!(
                "{} headers that the capture cut off",
                count("cut_by_snaplen")
            ));
        }
        let taps = self.rows("taps");
        let paused: u64 = taps
            .iter()
            .filter_map(|tap| tap.get("pause_frames").and_then(Value::as_u64))
            .sum();
        if paused == 0 {
            all.push("pause frames: none was captured, and few points of capture see them".to_owned());
        }
        if let [_] = taps {
            all.push("where on the way something happened: there is one point of capture".to_owned());
        }
        all
    }
}

/// The document of an analysis; of one that failed its messages.
fn parsed(output: &Output) -> anyhow::Result<Value> {
    match serde_json::from_slice(&output.text) {
        Ok(document) => Ok(document),
        Err(_) if output.messages.trim().is_empty() => {
            bail!("the analysis has no results (exit code {})", output.code)
        }
        Err(_) => bail!("{}", output.messages.trim()),
    }
}

/// A text of an object; empty if it has none.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Texts of an array.
pub(super) fn names<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    let names = object.get(name).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// A time in nanoseconds, which documents have as text.
pub(super) fn time(object: &Value, name: &str) -> Option<u64> {
    object.get(name).and_then(Value::as_str)?.parse().ok()
}
