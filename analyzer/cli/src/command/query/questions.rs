//! The questions that come with the program: their texts are the files of `spark/sql`, one text for DuckDB and Spark.

/// A question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// The question, in a sentence.
    pub(crate) about: &'static str,
    /// A SELECT over the tables of the dataset and the views of `spark/sql/views.sql`.
    pub(crate) sql: &'static str,
}

macro_rules! question {
    ($name:literal, $about:literal) => {
        Question {
            name: $name,
            about: $about,
            sql: include_str!(concat!("../../../../../spark/sql/", $name, ".sql")),
        }
    };
}

/// Views that the questions share.
pub(super) const VIEWS: &str = include_str!("../../../../../spark/sql/views.sql");

/// All questions, in the order of the report.
pub(crate) const ALL: [Question; 7] = [
    question!("destinations", "congested destinations, by hour"),
    question!(
        "incasts",
        "several hosts that send to one destination within a millisecond"
    ),
    question!("racks", "aggressors and victims of congestion, by rack"),
    question!("pairs", "pairs of hosts against their own last seven days"),
    question!("ends", "packets sent and arrived of each flow, by second"),
    question!("clocks", "clocks that disagree"),
    question!("jobs", "jobs by the time that they lost to the network"),
];

/// A question by its name.
pub(super) fn find(name: &str) -> Option<Question> {
    ALL.into_iter().find(|question| question.name == name)
}

/// All names, for messages.
pub(super) fn names() -> String {
    ALL.map(|question| question.name).join(", ")
}

/// A line for each question.
pub(super) fn list() -> String {
    let lines = ALL.map(|question| format!(" {:<13} {}", question.name, question.about));
    lines.join("\n") + "\n"
}
