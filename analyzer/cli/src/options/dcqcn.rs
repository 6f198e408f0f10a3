//! The reaction point of the senders, as an argument. What its parameters are is known to the analysis.

use std::fmt;

use roce_flow::DcqcnParameters;

/// Parameters of senders' reaction to congestion notifications.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reaction {
    text: String,
    /// `None`: not by DCQCN.
    pub(crate) parameters: Option<DcqcnParameters>,
}

impl Reaction {
    /// Parses `paper`, `ns3`, `nvidia`, one of these and changes to it (`nvidia,timer=55us`), or `none` for congestion
    /// control that is another one.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parameters = if text.trim() == "none" {
            None
        } else {
            Some(
                text.parse()
                    .map_err(|error: roce_flow::DcqcnParametersError| error.to_string())?,
            )
        };
        Ok(Self {
            text: text.to_owned(),
            parameters,
        })
    }
}

impl fmt::Display for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use roce_model::Span;

    use super::*;

    #[test]
    fn sets_and_changes_to_them() {
        let parameters = |text| Reaction::parse(text).unwrap().parameters;
        assert_eq!(parameters("paper"), Some(DcqcnParameters::PAPER));
        let changed = DcqcnParameters {
            timer: Span(55_000),
            ..DcqcnParameters::NVIDIA
        };
        assert_eq!(parameters("nvidia,timer=55us"), Some(changed));
        assert_eq!(parameters("none"), None);
        assert!(Reaction::parse("swift").is_err());
    }
}
