//! Answers to an `ExportMetricsServiceRequest`: success, partial success, and the `Status` of a failure (OTLP specification, "OTLP/HTTP
//! Response").

use crate::translator::PointTally;

/// Encoding of a request, and so of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestForm {
    /// Binary protobuf.
    Protobuf,
    /// JSON.
    Json,
}

impl RequestForm {
    /// The encoding of a media type; `None` of others. Parameters behind a semicolon are allowed.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let name = media_type.split(';').next().unwrap_or_default().trim();
        [Self::Protobuf, Self::Json]
            .into_iter()
            .find(|encoding| encoding.media_type().eq_ignore_ascii_case(name))
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// `ExportMetricsServiceResponse{1 partial_success{1 rejected_data_points, 2 error_message}}`. The field is absent where all points were
/// taken.
pub fn success(encoding: RequestForm, tally: &PointTally) -> Vec<u8> {
    let rejected = tally.left_out();
    let text = tally.text();
    match (encoding, text) {
        (RequestForm::Protobuf, None) => Vec::new(),
        (RequestForm::Json, None) => b"{}".to_vec(),
        (RequestForm::Protobuf, Some(text)) => {
            let mut partial = vec![1 << 3];
            put_varint(rejected, &mut partial);
            put_bytes(2, text.as_bytes(), &mut partial);
            let mut message = Vec::new();
            put_bytes(1, &partial, &mut message);
            message
        }
        (RequestForm::Json, Some(text)) => {
            let partial = serde_json::json!({
                "partialSuccess": {"rejectedDataPoints": rejected.to_string(), "errorMessage": text}
            });
            partial.to_string().into_bytes()
        }
    }
}

/// `google.rpc.Status{2 message}`.
pub fn failure(encoding: RequestForm, text: &str) -> Vec<u8> {
    match encoding {
        RequestForm::Protobuf => {
            let mut message = Vec::new();
            put_bytes(2, text.as_bytes(), &mut message);
            message
        }
        RequestForm::Json => serde_json::json!({ "message": text }).to_string().into_bytes(),
    }
}

/// Adds a varint.
pub(crate) fn put_varint(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    into.push(value.to_le_bytes()[0]);
}

/// Adds a field of bytes: its tag, its length, and itself.
pub(crate) fn put_bytes(number: u8, bytes: &[u8], into: &mut Vec<u8>) {
    into.push(number << 3 | 2);
    put_varint(bytes.len() as u64, into);
    into.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_the_specification() {
        let full = PointTally::default();
        assert_eq!(success(RequestForm::Protobuf, &full), b"");
        assert_eq!(success(RequestForm::Json, &full), b"{}");
        let partial = PointTally {
            taken: 1,
            no_unit: 300,
            ..PointTally::default()
        };
        let text = "300 of 301 points became no samples: 300 state no unit";
        // The text has 54 bytes: 3 + 2 + 54 = 59, of which 08 ac 02 is the varint 300.
        let bytes = success(RequestForm::Protobuf, &partial);
        assert_eq!(bytes[..7], [0x0a, 59, 0x08, 0xac, 0x02, 0x12, 54]);
        assert_eq!(&bytes[7..], text.as_bytes());
        let json: serde_json::Value = serde_json::from_slice(&success(RequestForm::Json, &partial)).unwrap();
        assert_eq!(json["partialSuccess"]["rejectedDataPoints"], "300");
        assert_eq!(json["partialSuccess"]["errorMessage"], text);
        assert_eq!(failure(RequestForm::Protobuf, "no"), b"\x12\x02no");
        assert_eq!(failure(RequestForm::Json, "no"), br#"{"message":"no"}"#);
    }

    #[test]
    fn media_types_have_parameters() {
        for (text, encoding) in [
            ("application/x-protobuf", Some(RequestForm::Protobuf)),
            ("Application/JSON; charset=utf-8", Some(RequestForm::Json)),
            ("text/plain", None),
            ("", None),
        ] {
            assert_eq!(RequestForm::from_media_type(text), encoding, "{text}");
        }
    }
}
