//! Where a capture was made, as an argument.

use roce_model::TapPlace;

/// Parses `sender`, `receiver` or the address of a host.
pub(crate) fn parse(text: &str) -> Result<TapPlace, String> {
    match text {
        "sender" => Ok(TapPlace::Sender),
        "receiver" => Ok(TapPlace::Receiver),
        host => host
            .parse()
            .map(TapPlace::Host)
            .map_err(|_| "expected sender, receiver, or an address such as 10.0.0.5".to_owned()),
    }
}

/// The argument again.
pub(crate) fn text(place: TapPlace) -> String {
    match place {
        TapPlace::Sender => "sender".to_owned(),
        TapPlace::Receiver => "receiver".to_owned(),
        TapPlace::Host(host) => host.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_what_is_none() {
        for place in ["sender", "receiver", "10.0.0.5", "fd00::5"] {
            assert_eq!(parse(place).map(text).as_deref(), Ok(place));
        }
        assert_eq!(
            parse("leaf1").unwrap_err(),
            "expected sender, receiver, or an address such as 10.0.0.5"
        );
    }
}
