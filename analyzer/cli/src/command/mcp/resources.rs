//! Resources: the inputs of the served folder, the tables' columns, and how verdicts are made.

use serde_json::{Value, json};

use super::inputs::ServedFolder;
use super::message::{INVALID_PARAMS, RequestError};

const INPUTS: &str = "roce-analyze://inputs";
const SCHEMA: &str = "roce-analyze://schema";
const METHOD: &str = "roce-analyze://method";
/// The page about the method.
const METHOD_PAGE: &str = include_str!("../../../../../docs/method.md");

/// Descriptions of all resources.
pub(super) fn list() -> Value {
    let resource = |uri: &str, name: &str, kind: &str, description: &str| json!({ "uri": uri, "name": name, "mimeType": kind, "description": description });
    json!([
        resource(
            INPUTS,
            "inputs",
            "application/json",
            "Captures, datasets and documents that tools can read"
        ),
        resource(
            SCHEMA,
            "schema",
            "text/markdown",
            "Columns of all tables, with unit and meaning"
        ),
        resource(
            METHOD,
            "method",
            "text/markdown",
            "How verdicts are made, and what they cannot say"
        ),
    ])
}

/// Contents of a resource.
///
/// # Errors
/// When there is none of this name: -32602 (2026-07-28, resources, "Error Handling").
pub(super) fn read(uri: &str, folder: &ServedFolder) -> Result<Value, RequestError> {
    let (kind, text) = match uri {
        INPUTS => {
            let (inputs, is_cut) = folder.list();
            let mut list = json!({ "inputs": inputs, "truncated": is_cut });
            super::answer::tame(&mut list);
            ("application/json", list.to_string())
        }
        SCHEMA => ("text/markdown", roce_report::schema::markdown()),
        METHOD => ("text/markdown", METHOD_PAGE.to_owned()),
        _ => {
            return Err(RequestError {
                data: Some(json!({ "uri": uri })),
                ..RequestError::new(INVALID_PARAMS, "there is no such resource")
            });
        }
    };
    Ok(json!([{ "uri": uri, "mimeType": kind, "text": text }]))
}
