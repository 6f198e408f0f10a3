//! `show interface counters`, `show interface counters errors` and `show interface`: bytes, packets by cast, errors, discards.

use roce_model::Counter;

use super::super::paragraphs;
use super::answer::Body;
use super::json::{count, number, objects, table, text};
use super::sink::{NumberPlace, Sink};

/// Keys of `show interface | json` that other commands do not have.
const OWN_KEYS: [(&str, Counter, Option<&str>); 9] = [
    ("eth_reset_cntr", Counter::SwitchInterfaceLinkChanges, None),
    ("eth_crc", Counter::SwitchInterfaceFcsErrors, None),
    ("eth_inerr", Counter::SwitchInterfaceErrors, Some("received")),
    ("eth_outerr", Counter::SwitchInterfaceErrors, Some("transmitted")),
    (
        "eth_indiscard",
        Counter::SwitchInterfaceDiscards,
        Some("received"),
    ),
    (
        "eth_outdiscard",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
    ("eth_inpause", Counter::SwitchPauseReceivedFrames, None),
    ("eth_outpause", Counter::SwitchPauseTransmittedFrames, None),
    ("eth_mtu", Counter::SwitchInterfaceMtu, None),
];

/// Keys of the JSON, headings of the text, and what they count. Kinds of errors that are part of the sums are left out.
const COLUMNS: [(&str, &str, Counter, Option<&str>); 13] = [
    (
        "eth_inbytes",
        "InOctets",
        Counter::SwitchInterfaceReceivedBytes,
        None,
    ),
    (
        "eth_inucast",
        "InUcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
    ),
    (
        "eth_inmcast",
        "InMcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("multicast"),
    ),
    (
        "eth_inbcast",
        "InBcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("broadcast"),
    ),
    (
        "eth_outbytes",
        "OutOctets",
        Counter::SwitchInterfaceTransmittedBytes,
        None,
    ),
    (
        "eth_outucast",
        "OutUcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
    ),
    (
        "eth_outmcast",
        "OutMcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("multicast"),
    ),
    (
        "eth_outbcast",
        "OutBcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("broadcast"),
    ),
    ("eth_fcs_err", "FCS-Err", Counter::SwitchInterfaceFcsErrors, None),
    (
        "eth_rcv_err",
        "Rcv-Err",
        Counter::SwitchInterfaceErrors,
        Some("received"),
    ),
    (
        "eth_xmit_err",
        "Xmit-Err",
        Counter::SwitchInterfaceErrors,
        Some("transmitted"),
    ),
    (
        "eth_indisc",
        "InDiscards",
        Counter::SwitchInterfaceDiscards,
        Some("received"),
    ),
    (
        "eth_outdisc",
        "OutDiscards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
];

/// Tables of the JSON.
const TABLES: [&str; 3] = ["rx_counters", "tx_counters", "interface"];

pub(super) fn read(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Json(documents) => {
            let mut is_known = false;
            for document in documents.iter().flat_map(objects) {
                for row in TABLES.iter().flat_map(|name| table(document, name)) {
                    is_known = true;
                    let name = text(row, &["interface_rx", "interface_tx", "interface"]);
                    for (key, _, counter, detail) in COLUMNS {
                        put(name.as_deref(), counter, detail, count(row, &[key]), sink);
                    }
                }
            }
            is_known
        }
        Body::Text(text) => read_text(text, sink),
    }
}

/// `show interface`, of one interface or of all.
pub(super) fn interfaces(body: &Body, command: &str, sink: &mut Sink<'_>) -> bool {
    let documents = match body {
        Body::Json(documents) => documents,
        Body::Text(text) => {
            return paragraphs::read(text, &mut |name, numbers| {
                for (counter, detail, value) in numbers {
                    put(Some(name), *counter, *detail, Some(*value), sink);
                }
            });
        }
    };
    for document in documents.iter().flat_map(objects) {
        for row in table(document, "interface") {
            let name = text(row, &["interface"]);
            for (key, counter, detail) in OWN_KEYS {
                put(name.as_deref(), counter, detail, count(row, &[key]), sink);
            }
            let is_up = match text(row, &["state"]).as_deref() {
                Some("up") => Some(1),
                Some("down") => Some(0),
                _ => None,
            };
            put(name.as_deref(), Counter::SwitchInterfaceUp, None, is_up, sink);
        }
    }
    read(body, command, sink)
}

fn put(
    name: Option<&str>,
    counter: Counter,
    detail: Option<&'static str>,
    value: Option<u64>,
    sink: &mut Sink<'_>,
) {
    if value.is_none() {
        return;
    }
    if let Some(interface) = name.and_then(|name| sink.interface(name)) {
        let details: Vec<_> = detail.into_iter().map(Into::into).collect();
        sink.put(NumberPlace::interface(&interface), counter, &details, value);
    }
}

/// Tables with a heading `Port ...`. A line of hyphens behind rows ends a table: rows behind it belong to the next heading, or to nobody.
fn read_text(text: &str, sink: &mut Sink<'_>) -> bool {
    let mut is_known = false;
    let mut heading: Vec<&str> = Vec::new();
    let mut has_rows = false;
    for line in text.lines() {
        let line = line.trim();
        if line.len() > 3 && line.bytes().all(|byte| byte == b'-') {
            if has_rows {
                heading.clear();
            }
            has_rows = false;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"Port") {
            is_known = true;
            heading = words;
            has_rows = false;
            continue;
        }
        has_rows = true;
        if words.len() != heading.len() {
            continue;
        }
        for (name, value) in heading.iter().zip(&words).skip(1) {
            if let Some((_, _, counter, detail)) = COLUMNS.iter().find(|(_, column, _, _)| column == name) {
                put(words.first().copied(), *counter, *detail, number(value), sink);
            }
        }
    }
    is_known
}
