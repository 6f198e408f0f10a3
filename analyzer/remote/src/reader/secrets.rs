//! Secrets in answers of devices: passwords, communities of SNMP, keys. They are left out of what is recorded.

use serde_json::Value;

/// Text in the place of what is left out.
pub(crate) const LEFT_OUT: &str = "(left out)";

/// Parts of words that announce a secret, in lower case.
const PARTS: [&str; 7] = [
    "passw",
    "passphrase",
    "secret",
    "community",
    "credential",
    "keystring",
    "authentication",
];
/// Whole words that announce a secret, in lower case.
const WORDS: [&str; 10] = [
    "key", "keys", "token", "tokens", "psk", "md5", "sha", "apikey", "passwd", "snmp",
];
/// Parts of names of serial numbers, in lower case and without separators: NX-OS' `proc_board_id` and `serialnum`, "Processor Board ID",
/// "Serial Number".
const SERIALS: [&str; 3] = ["procboardid", "processorboardid", "serial"];

/// An answer without its secrets; with `without_serials` without serial numbers, too.
pub(crate) fn without_secrets(text: &str, without_serials: bool) -> String {
    if text.trim_start().starts_with(['{', '[']) {
        let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text)
            .into_iter::<Value>()
            .collect();
        if let Ok(mut documents) = documents {
            let mut out = String::new();
            for document in &mut documents {
                strip(document, without_serials);
                out.push_str(&document.to_string());
                out.push('\n');
            }
            return out;
        }
    }
    let mut out = String::new();
    for line in text.lines() {
        if is_secret(line) || without_serials && is_serial(line) {
            out.push_str(LEFT_OUT);
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// True if a line or a name announces a secret.
fn is_secret(text: &str) -> bool {
    let lower = text.to_lowercase();
    PARTS.iter().any(|part| lower.contains(part))
        || lower
            .split(|character: char| !character.is_ascii_alphanumeric())
            .any(|word| WORDS.contains(&word))
}

fn is_serial(text: &str) -> bool {
    let plain: String = text
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect();
    SERIALS.iter().any(|part| plain.contains(part))
}

/// Takes secrets out of a document. serde_json has bounded its depth.
fn strip(value: &mut Value, without_serials: bool) {
    match value {
        Value::Object(members) => {
            for (name, mut value) in std::mem::take(members) {
                // SONiC's databases have the secret in the name: `SNMP_COMMUNITY|public`.
                let (table, row) = name.split_once('|').unwrap_or((&name, ""));
                if is_secret(table) {
                    let kept = if row.is_empty() {
                        name
                    } else {
                        format!("{table}|{LEFT_OUT}")
                    };
                    members.insert(kept, Value::from(LEFT_OUT));
                } else if without_serials && is_serial(table) {
                    members.insert(name, Value::from(LEFT_OUT));
                } else {
                    strip(&mut value, without_serials);
                    members.insert(name, value);
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                strip(value, without_serials);
            }
        }
        Value::String(text) if is_secret(text) => *text = without_lines(text),
        _ => {}
    }
}

/// A text in a document, without the lines that have secrets.
fn without_lines(text: &str) -> String {
    let kept = |line| if is_secret(line) { LEFT_OUT } else { line };
    text.lines().map(kept).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_secrets_are_left_out() {
        // Forms of NX-OS: `username`, `snmp-server`, `tacacs-server`, BGP, and key chains.
        let text = "version 9.3(9)\r\n\
username admin password 5 $5$canary  role network-admin\n\
snmp-server community canary group network-operator\n\
tacacs-server host 192.0.2.1 key 7 \"canary\"\n  key-string 7 canary\n\
interface Ethernet1/1/1\n  priority-flow-control mode on\n";
        let kept = without_secrets(text, false);
        assert!(!kept.contains("canary"), "{kept}");
        for line in [
            "version 9.3(9)",
            "interface Ethernet1/1/1",
            "  priority-flow-control mode on",
        ] {
            assert!(kept.lines().any(|kept| kept == line), "{line}: {kept}");
        }
    }

    #[test]
    fn documents_stay_documents() {
        let text = "{\"a\":{\"Password\":\"canary\",\"rx-stats\":18446744073709551615},\
\"SNMP_COMMUNITY|canary\":{\"value\":{\"TYPE\":\"RO\"}},\"body\":\"one\\nenable secret canary\\ntwo\",\
\"proc_board_id\":\"FDO1\"}\n{\"rows\":[{\"key\":\"canary\"},{\"queue\":3}]}";
        let kept = without_secrets(text, false);
        assert!(!kept.contains("canary"), "{kept}");
        let documents: Vec<Value> = kept
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        // Values beyond 2^53 stay exact.
        assert_eq!(documents[0]["a"]["rx-stats"].as_u64(), Some(u64::MAX));
        assert_eq!(documents[0]["body"], "one\n(left out)\ntwo");
        assert_eq!(documents[0]["proc_board_id"], "FDO1");
        assert_eq!(documents[1]["rows"][1]["queue"], 3);
        assert!(!without_secrets(text, true).contains("FDO1"));
        // A document that is cut short is a text: of one line with a secret nothing is kept.
        assert_eq!(
            without_secrets("{\"password\":\"canary", false),
            format!("{LEFT_OUT}\n")
        );
    }

    #[test]
    fn serial_numbers_are_left_out_when_wanted() {
        let text = "  Processor Board ID FDO1\nSerial Number: FDO1\nmodel: N9K\n";
        assert_eq!(without_secrets(text, false), text);
        assert_eq!(
            without_secrets(text, true),
            format!("{LEFT_OUT}\n{LEFT_OUT}\nmodel: N9K\n")
        );
    }
}
