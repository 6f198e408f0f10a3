//! What the traffic is expected to be, as an argument.

use roce_model::Expectation;

/// Parses `dscp=26,priority=3`; the last of several values of one key wins.
pub(crate) fn parse(text: &str) -> Result<Expectation, String> {
    let mut expectation = Expectation::default();
    for part in text.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            let keys = Expectation::KEYS.join(", ");
            format!("'{part}' is not KEY=VALUE such as dscp=26; keys are {keys}")
        })?;
        expectation.state(key.trim(), value.trim())?;
    }
    Ok(expectation)
}

/// All of them as one: a later one wins.
pub(crate) fn all(given: &[Expectation]) -> Expectation {
    given
        .iter()
        .fold(Expectation::default(), |all, later| later.over(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values() {
        let given = ["dscp=26, mtu=1024", "mtu=4096"].map(|text| parse(text).unwrap());
        assert_eq!(all(&given).to_string(), "dscp=26,mtu=4096");
        assert_eq!(
            parse("26").unwrap_err(),
            "'26' is not KEY=VALUE such as dscp=26; keys are dscp, priority, mtu, cnp-dscp, cnp-priority"
        );
        assert!(parse("dscp=26,").is_err() && parse("").is_err());
        assert_eq!(parse("dscp=-1").unwrap_err(), "dscp -1 is not from 0 to 63");
    }
}
