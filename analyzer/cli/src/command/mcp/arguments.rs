//! Arguments of a tool: they are read with their types, and those that no tool knows are errors that name the ones that it has.

use anyhow::{anyhow, bail};
use roce_model::text::clean;
use serde_json::{Value, json};

use super::message::Parameters;

/// Longest text of an argument, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// Inputs of one question.
const MAX_INPUTS: usize = 64;

/// One argument of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub name: &'static str,
    pub kind: ArgumentKind,
    pub is_required: bool,
    pub meaning: &'static str,
}

/// Type of an argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgumentKind {
    Text,
    /// One text, or several.
    Texts,
    /// A whole number from 0 to this one.
    Number(u64),
}

impl Argument {
    pub(super) const fn required(name: &'static str, kind: ArgumentKind, meaning: &'static str) -> Self {
        Self {
            name,
            kind,
            is_required: true,
            meaning,
        }
    }

    pub(super) const fn optional(name: &'static str, kind: ArgumentKind, meaning: &'static str) -> Self {
        Self {
            is_required: false,
            ..Self::required(name, kind, meaning)
        }
    }

    fn schema(&self) -> Value {
        match self.kind {
            ArgumentKind::Text => json!({ "type": "string", "description": self.meaning }),
            ArgumentKind::Texts => json!({
                "anyOf": [
                    { "type": "string" },
                    { "type": "array", "items": { "type": "string" }, "maxItems": MAX_INPUTS }
                ],
                "description": self.meaning
            }),
            ArgumentKind::Number(most) => json!({
                "type": "integer", "minimum": 0, "maximum": most, "description": self.meaning
            }),
        }
    }
}

/// The schema of a tool's arguments.
pub(super) fn schema(arguments: &[Argument]) -> Value {
    let properties: Parameters = arguments
        .iter()
        .map(|argument| (argument.name.to_owned(), argument.schema()))
        .collect();
    let required = arguments.iter().filter(|argument| argument.is_required);
    let required: Vec<&str> = required.map(|argument| argument.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

/// The arguments of a call.
#[derive(Debug)]
pub(super) struct GivenArguments<'a> {
    known: &'a [Argument],
    given: &'a Parameters,
}

impl<'a> GivenArguments<'a> {
    /// Arguments that fit those of the tool.
    ///
    /// # Errors
    /// When one is missing, unknown or of another type.
    pub(super) fn new(known: &'a [Argument], given: &'a Parameters) -> anyhow::Result<Self> {
        if let Some(name) = given
            .keys()
            .find(|name| !known.iter().any(|known| known.name == **name))
        {
            let names: Vec<&str> = known.iter().map(|known| known.name).collect();
            bail!(
                "there is no argument {}: there are {}",
                clean(name),
                names.join(", ")
            );
        }
        let missing = known
            .iter()
            .find(|known| known.is_required && !given.contains_key(known.name));
        if let Some(missing) = missing {
            bail!("the argument {} is missing: {}", missing.name, missing.meaning);
        }
        Ok(Self { known, given })
    }

    /// A text; `None` if it was not given.
    ///
    /// # Errors
    /// When it is no text, or too long.
    pub(super) fn text(&self, name: &str) -> anyhow::Result<Option<&'a str>> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() > MAX_TEXT => {
                bail!("{name} has more than {MAX_TEXT} bytes")
            }
            Some(Value::String(text)) if text.contains('\0') => bail!("{name} has a zero byte"),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => bail!("{name} has to be a text"),
        }
    }

    /// A text that has to be there.
    ///
    /// # Errors
    /// As those of [`text`](Self::text), and when it is missing.
    pub(super) fn needed(&self, name: &str) -> anyhow::Result<&'a str> {
        self.text(name)?.ok_or_else(|| anyhow!("{name} has to be a text"))
    }

    /// One text or several; none if it was not given.
    ///
    /// # Errors
    /// When one of them is no text, or there are too many.
    pub(super) fn texts(&self, name: &str) -> anyhow::Result<Vec<&'a str>> {
        let Some(Value::Array(values)) = self.given.get(name) else {
            return Ok(self.text(name)?.into_iter().collect());
        };
        if values.len() > MAX_INPUTS {
            bail!("{name} has more than {MAX_INPUTS} texts");
        }
        let texts = values.iter().map(|value| match value.as_str() {
            Some(text) if text.len() <= MAX_TEXT && !text.contains('\0') => Ok(text),
            _ => bail!("{name} has to be a text or an array of texts"),
        });
        texts.collect()
    }

    /// A number within its bounds, or `usual`.
    ///
    /// # Errors
    /// When it is another type, or beyond its bounds.
    pub(super) fn number(&self, name: &str, usual: u64) -> anyhow::Result<u64> {
        let most = self.known.iter().find(|known| known.name == name);
        let most = most.map_or(u64::MAX, |known| match known.kind {
            ArgumentKind::Number(most) => most,
            _ => u64::MAX,
        });
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(usual),
            Some(value) => match value.as_u64().filter(|number| *number <= most) {
                Some(number) => Ok(number),
                None => bail!("{name} has to be a whole number from 0 to {most}"),
            },
        }
    }

    /// True if it was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.get(name).is_some_and(|value| !value.is_null())
    }
}
