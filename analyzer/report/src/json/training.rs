//! How a training log fits the captured steps, as an object of the document.

use roce_model::TrainingLogFit;
use serde_json::{Value, json};

/// The object. Times are medians in ns; null where the log or the packets have none.
pub(super) fn object(fit: &TrainingLogFit) -> Value {
    let pair = |both: Option<(u64, u64)>| {
        both.map(|(log, packets)| json!({ "log_ns": log, "captured_ns": packets }))
    };
    json!({
        "logged_steps": fit.logged_steps,
        "joined_rows": fit.joined_rows,
        "allreduce": pair(fit.allreduce),
        "total": pair(fit.total),
        "is_doubtful": fit.is_doubtful(),
    })
}

/// The fit that was written so; `None`: there is none, as in documents of earlier versions.
pub(super) fn fit(value: &Value) -> Option<TrainingLogFit> {
    let pair = |key: &str| {
        let both = &value[key];
        both["log_ns"].as_u64().zip(both["captured_ns"].as_u64())
    };
    Some(TrainingLogFit {
        logged_steps: value["logged_steps"].as_u64()?,
        joined_rows: value["joined_rows"].as_u64()?,
        allreduce: pair("allreduce"),
        total: pair("total"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_is_read_as_it_was_written() {
        let whole = TrainingLogFit {
            logged_steps: 40,
            joined_rows: 12,
            allreduce: Some((45_200_000, 540_000)),
            total: None,
        };
        let value = object(&whole);
        assert_eq!(fit(&value), Some(whole));
        // 45.2 ms by the log, 0.54 ms in the packets: more than ten times as long.
        assert_eq!(value["is_doubtful"], true);
        assert_eq!(fit(&Value::Null), None);
    }
}
