//! The tools: their names, arguments and schemas, and which of them answers a call.

mod document;
mod frames;
mod others;
mod rows;
mod verdict;

use serde_json::{Value, json};

use super::answer::{self, ToolAnswer};
use super::arguments::{self, Argument, ArgumentKind, GivenArguments};
use super::context::ToolContext;
use super::message::Parameters;

const INPUT: Argument = Argument::required(
    "input",
    ArgumentKind::Texts,
    "Path of a capture below the served folder, several of one run, or a folder that -o wrote",
);
const MERGE: Argument = Argument::optional(
    "merge",
    ArgumentKind::Texts,
    "Paths of documents of the job, such as NCCL Inspector's or traces: as --merge",
);
const NCCL_LOG: Argument = Argument::optional(
    "nccl_log",
    ArgumentKind::Texts,
    "Paths of NCCL's logs of the job, which name ranks: as --nccl-log",
);
const FLOW: Argument = Argument::optional(
    "flow",
    ArgumentKind::Text,
    "Only flows that match this expression, such as \"10.0.0.5 > 10.0.0.7 QP 0x11\": as --flow",
);
/// Frames that one answer has at most.
pub(super) const MAX_FRAMES: u64 = 200;
/// Rows that one answer has at most.
pub(super) const MAX_ROWS: u64 = 1_000;

/// Function that answers a call of a tool.
type AnswerTool = fn(&GivenArguments<'_>, &mut ToolContext<'_>) -> anyhow::Result<ToolAnswer>;

/// One tool.
#[derive(Debug)]
pub(super) struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
    rows: &'static str,
    answer: AnswerTool,
}

/// All tools, in the order of their list.
const TOOLS: [Tool; 8] = [
    Tool {
        name: "verdict",
        title: "Verdict on a capture",
        description: "Analyses a capture of RDMA traffic and says what was wrong: the first sentence, and each finding with id, \
                      severity, confidence, cost and next step. Begin here.",
        arguments: &[INPUT, MERGE, NCCL_LOG],
        rows: "Findings, roots before what follows from them.",
        answer: verdict::verdict,
    },
    Tool {
        name: "why",
        title: "Why a finding or a slow collective",
        description: "The chain behind a finding (what it follows from, what follows from it), or the waits of one collective, with \
                      frames, and what would make it surer.",
        arguments: &[
            INPUT,
            Argument::optional(
                "finding",
                ArgumentKind::Text,
                "Id of a finding [default: the first root]",
            ),
            Argument::optional(
                "collective",
                ArgumentKind::Number(u64::MAX),
                "Number of a collective, in place of a finding",
            ),
            MERGE,
            NCCL_LOG,
        ],
        rows: "Findings with their relation (root, asked, follows), or rows of collective_waits.",
        answer: verdict::why,
    },
    Tool {
        name: "packets",
        title: "Frames of a capture",
        description: "Frames with file, number, time, decoded fields, roles and a comment: those that the analysis has something to say \
                      about, of a finding, of a flow, or with one of some roles.",
        arguments: &[
            INPUT,
            Argument::optional(
                "finding",
                ArgumentKind::Text,
                "Only frames that a finding with this id rests on",
            ),
            FLOW,
            Argument::optional(
                "roles",
                ArgumentKind::Texts,
                "Only frames with one of these roles: data, ack, nak, rnr_nak, cnp, mark, missing, retransmission, late, stall, epoch, \
                 credit, message, pause, management, records_lost, mrc",
            ),
            Argument::optional(
                "limit",
                ArgumentKind::Number(MAX_FRAMES),
                "Frames, at most 200 [default: 50]",
            ),
        ],
        rows: "Frames in the order of time.",
        answer: rows::packets,
    },
    Tool {
        name: "flows",
        title: "Flows of a capture",
        description: "Rows of flows: who sent what to whom, with losses, retransmissions, marks, times. explain flows lists the columns.",
        arguments: &[
            INPUT,
            FLOW,
            Argument::optional(
                "sort",
                ArgumentKind::Text,
                "Column by which rows are sorted, the largest first [default: most trouble, then bytes]",
            ),
            Argument::optional(
                "columns",
                ArgumentKind::Texts,
                "Columns of the rows [default: a few; \"all\" for all]",
            ),
            Argument::optional(
                "limit",
                ArgumentKind::Number(MAX_ROWS),
                "Rows, at most 1000 [default: 20]",
            ),
            NCCL_LOG,
        ],
        rows: "Flows with the chosen columns.",
        answer: rows::flows,
    },
    Tool {
        name: "ranks",
        title: "Ranks and what they waited for",
        description: "For each collective and rank of a job over NCCL: time of computing, late start, waits for input, credit and \
                      network, and for whom it waited.",
        arguments: &[
            INPUT,
            Argument::optional(
                "collective",
                ArgumentKind::Number(u64::MAX),
                "Only this collective",
            ),
            MERGE,
            NCCL_LOG,
            Argument::optional(
                "limit",
                ArgumentKind::Number(MAX_ROWS),
                "Rows, at most 1000 [default: 100]",
            ),
        ],
        rows: "Rows of collective_waits: explain collective_waits describes them.",
        answer: rows::ranks,
    },
    Tool {
        name: "compare",
        title: "Two runs",
        description: "What differs between two captures, or two folders that -o wrote, by more than noise.",
        arguments: &[
            Argument::required("a", ArgumentKind::Text, "Path of the run before"),
            Argument::required("b", ArgumentKind::Text, "Path of the run after"),
        ],
        rows: "New or gone findings, then quantities, overall and by pair of hosts, each with its interval.",
        answer: others::compare,
    },
    Tool {
        name: "query",
        title: "SQL on a dataset",
        description: "One SELECT, or a question by its name, on a folder that -o wrote. DuckDB answers, read only, within limits of time \
                      and memory. explain TABLE lists columns.",
        arguments: &[
            Argument::required("dataset", ArgumentKind::Text, "Path of the folder"),
            Argument::required("sql", ArgumentKind::Text, "One SELECT, or the name of a question"),
            Argument::optional(
                "limit",
                ArgumentKind::Number(MAX_ROWS),
                "Rows, at most 1000 [default: 100]",
            ),
        ],
        rows: "Rows of the answer.",
        answer: others::query,
    },
    Tool {
        name: "explain",
        title: "Meaning of a word",
        description: "Meaning, rule, thresholds and source of a finding or a check, or the columns of a table. \"list\" names all.",
        arguments: &[Argument::required(
            "id",
            ArgumentKind::Text,
            "Id of a finding or a check, or name of a table",
        )],
        rows: "None: the answer is text.",
        answer: others::explain,
    },
];

/// Descriptions of all tools.
pub(super) fn list() -> Value {
    let tools = TOOLS.iter().map(|tool| {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": arguments::schema(tool.arguments),
            "outputSchema": answer::schema(tool.rows),
            "annotations": {
                "title": tool.title,
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false
            }
        })
    });
    tools.collect()
}

/// The tool of this name.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// The result of a call. What goes wrong is part of it, for the model to read (2025-11-25 and 2026-07-28, tools, "Error Handling").
    pub(super) fn call(&self, given: &Parameters, context: &mut ToolContext<'_>) -> Value {
        let answered = GivenArguments::new(self.arguments, given);
        match answered.and_then(|given| (self.answer)(&given, context)) {
            Ok(answer) => {
                let structured = answer.into_json();
                json!({
                    "content": [{ "type": "text", "text": structured.to_string() }],
                    "structuredContent": structured,
                    "isError": false
                })
            }
            Err(error) => {
                let mut text = Value::String(format!("{error:#}"));
                answer::tame(&mut text);
                json!({ "content": [{ "type": "text", "text": text }], "isError": true })
            }
        }
    }
}
