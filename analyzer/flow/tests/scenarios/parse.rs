//! Reads scenario files: lines to packets and expectations. What goes wrong in a file panics with its line.

use std::collections::BTreeMap;

use roce_flow::Options;
use roce_model::{
    LinkAddresses, LostRecords, Management, Packet, PacketFlags, PauseFrame, Span, TapId, Time,
};
use roce_wire::{
    Address, Aeth, Bth, Carrier, MacAddress, Opcode, Pause, PauseKind, Psn, Qpn, Roce, Through, VlanTag,
};

/// Time zero of the scenarios: the begin of a bin of any usual width.
pub(crate) const BEGIN: u64 = 1_000 * Span::SECOND.0;

/// One scenario.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) options: Options,
    pub(crate) items: Vec<Item>,
    pub(crate) expectations: Vec<ScenarioLine>,
    /// Flows share one limit: shards of a run would not.
    pub(crate) one_part: bool,
    pub(crate) rows_in_parts: bool,
}

/// Input of the analysis at one time.
#[derive(Clone, Copy)]
pub(crate) enum Item {
    Packet(Packet),
    Management(Packet, Management),
    Lost(LostRecords),
    Pause(PauseFrame),
    Link(LinkAddresses),
}

impl Item {
    pub(crate) fn time(&self) -> Time {
        match self {
            Self::Packet(packet) | Self::Management(packet, _) => packet.time,
            Self::Lost(lost) => lost.time,
            Self::Pause(pause) => pause.time,
            Self::Link(link) => link.time,
        }
    }
}

/// A line's words, and where it stands.
pub(crate) struct ScenarioLine {
    pub(crate) place: String,
    pub(crate) words: Vec<String>,
}

impl ScenarioLine {
    pub(crate) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }
}

/// All scenarios of a file.
pub(crate) fn scenarios(file: &str, text: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut sort = Vec::new();
    let mut id = 0;
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
        let place = format!("{file}:{}", number + 1);
        match (words.as_slice(), scenarios.last_mut()) {
            ([], _) => {}
            (["scenario", name @ ..], _) => {
                scenarios.push(Scenario {
                    name: name.join(" "),
                    options: Options::default(),
                    items: Vec::new(),
                    expectations: Vec::new(),
                    one_part: false,
                    rows_in_parts: false,
                });
                sort.push(true);
            }
            (_, None) => panic!("{place}: a line before the first scenario"),
            (["bin", width], Some(scenario)) => scenario.options.bin = Span(time(width).expect(&place)),
            (["max-flows", most], Some(scenario)) => {
                scenario.options.max_flows = most.parse().expect(&place);
                scenario.one_part = true;
            }
            (["link-rate", rate], Some(scenario)) => {
                scenario.options.link_rate = Some(rate.parse::<u64>().expect(&place) * 1_000_000_000);
            }
            (["dscp-priority", dscp, priority], Some(scenario)) => {
                let dscp: usize = dscp.parse().expect(&place);
                scenario.options.priority_of_dscp[dscp] = priority.parse().expect(&place);
            }
            (["begun", "earlier", hosts], Some(scenario)) => {
                let at = BEGIN - 20_000_000;
                items(
                    &place,
                    at,
                    &[*hosts, "ud-send-only", "sqp", "9"],
                    &mut id,
                    &mut scenario.items,
                );
            }
            (["as", "written"], _) => *sort.last_mut().unwrap() = false,
            (["rows", "in", "parts"], Some(scenario)) => scenario.rows_in_parts = true,
            (["expect", words @ ..], Some(scenario)) => {
                let words = words.iter().map(|word| (*word).to_owned()).collect();
                scenario.expectations.push(ScenarioLine { place, words });
            }
            ([at, words @ ..], Some(scenario)) => {
                let at = BEGIN + time(at).unwrap_or_else(|| panic!("{place}: what is '{at}'?"));
                items(&place, at, words, &mut id, &mut scenario.items);
            }
        }
    }
    for (scenario, sort) in scenarios.iter_mut().zip(sort) {
        if sort {
            scenario.items.sort_by_key(Item::time);
        }
        assert!(
            !scenario.expectations.is_empty(),
            "{file}: '{}' expects nothing",
            scenario.name
        );
    }
    scenarios
}

/// A length of time: a whole number and `ns`, `us`, `ms` or `s`.
pub(crate) fn time(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * unit)
}

/// A number, decimal or after `0x`.
pub(crate) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A host of the scenarios, as the carrier names it.
pub(crate) fn host(name: u8, carrier: Carrier) -> Address {
    let last = name - b'a' + 1;
    match carrier {
        Carrier::RoceV2Ipv4 => Address::v4([10, 0, 0, last]),
        Carrier::InfinibandLocal => Address::lid(u16::from(last)),
        _ => Address::v6([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]),
    }
}

/// The link address of a host or of a port of a switch: single letters.
fn mac(name: &str) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, name.as_bytes()[0] - b'a' + 0x0a])
}

fn items(place: &str, at: u64, words: &[&str], id: &mut u16, items: &mut Vec<Item>) {
    let time = Time(at);
    match words {
        ["lost", records, rest @ ..] => {
            let records = number(records).expect(place);
            let rest = pairs(place, rest);
            let tap = TapId(rest.get("tap").map_or(0, |tap| value(place, tap)));
            let by_mirror = rest.contains_key("by");
            items.push(Item::Lost(LostRecords {
                before: 0,
                time,
                tap,
                records,
                by_mirror,
            }));
        }
        ["pause", quanta, rest @ ..] => {
            let rest = pairs(place, rest);
            let class: usize = rest.get("priority").map_or(3, |class| value(place, class));
            let quanta = value(place, quanta);
            let mut all = [0; 8];
            // Priority 8 is a pause of the whole link.
            all[class % 8] = quanta;
            let pause = Pause {
                source: mac(rest.get("from").unwrap_or(&"a")),
                destination: MacAddress::PAUSE,
                kind: if class == 8 {
                    PauseKind::Link
                } else {
                    PauseKind::Priority
                },
                enabled: if class == 8 { 0 } else { 1 << class },
                quanta: all,
                present: if class == 8 { 1 } else { 8 },
            };
            items.push(Item::Pause(PauseFrame {
                before: 0,
                time,
                tap: TapId(rest.get("tap").map_or(0, |tap| value(place, tap))),
                pause,
                reported: true,
            }));
        }
        ["link", hosts, rest @ ..] => {
            let rest = pairs(place, rest);
            let (source, destination) = hosts.split_once('>').expect(place);
            let macs = rest.get("macs").unwrap_or(hosts);
            let (source_mac, destination_mac) = macs.split_once('>').expect(place);
            items.push(Item::Link(LinkAddresses {
                before: 0,
                time,
                tap: TapId(rest.get("tap").map_or(0, |tap| value(place, tap))),
                source: host(source.as_bytes()[0], Carrier::RoceV2Ipv4),
                destination: host(destination.as_bytes()[0], Carrier::RoceV2Ipv4),
                source_mac: mac(source_mac),
                destination_mac: mac(destination_mac),
                hop_limit: rest.get("ttl").map_or(64, |ttl| value(place, ttl)),
            }));
        }
        [hosts, operation, rest @ ..] => {
            packets(place, at, (hosts, operation), &pairs(place, rest), id, items);
        }
        _ => panic!("{place}: what happens at that time?"),
    }
}

fn pairs<'a>(place: &str, words: &[&'a str]) -> BTreeMap<&'a str, &'a str> {
    assert!(
        words.len().is_multiple_of(2),
        "{place}: a word without its value in {words:?}"
    );
    words.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

fn value<T: TryFrom<u64>>(place: &str, text: &str) -> T {
    let number = number(text).unwrap_or_else(|| panic!("{place}: '{text}' is no number"));
    T::try_from(number).unwrap_or_else(|_| panic!("{place}: {text} is too large"))
}

const CM: [&str; 7] = ["req", "rep", "rtu", "rej", "dreq", "drep", "mra"];

fn packets(
    place: &str,
    at: u64,
    (hosts, operation): (&str, &str),
    words: &BTreeMap<&str, &str>,
    id: &mut u16,
    items: &mut Vec<Item>,
) {
    const KNOWN: [&str; 26] = [
        "qp", "psn", "every", "payload", "length", "dma", "tap", "path", "id", "ecn", "dscp", "sport",
        "syndrome", "msn", "sqp", "vlan", "pcp", "vni", "carrier", "icrc", "cut", "repeat", "ttl", "local",
        "remote", "ack",
    ];
    if let Some(word) = words.keys().find(|word| !KNOWN.contains(word)) {
        panic!("{place}: unknown word '{word}'");
    }
    let every = words
        .get("every")
        .map_or(1_000, |every| time(every).expect(place));
    let (first, last) = match words
        .get("psn")
        .map(|psns| psns.split_once('-').unwrap_or((psns, psns)))
    {
        Some((first, last)) => (Psn::new(value(place, first)), Psn::new(value(place, last))),
        None => (Psn::default(), Psn::default()),
    };
    let of = u32::try_from(last.offset_from(first)).expect("a range of PSNs that goes up") + 1;
    let repeat = words.get("repeat").map_or(1, |times| value(place, times));
    let is_cm = CM.contains(&operation);
    let syndrome = match operation {
        "nak" => 0x60,
        "rnr" => 0x2c,
        _ => 0x1f,
    };
    for i in 0..of * repeat {
        let opcode = if is_cm {
            Opcode::UD_SEND_ONLY
        } else {
            opcode(place, operation, i / repeat, of)
        };
        let time = Time(at + u64::from(i) * every);
        let psn = if is_cm {
            Psn::new(0)
        } else {
            first.plus(i / repeat)
        };
        if !words.contains_key("id") {
            *id = id.wrapping_add(1);
        }
        let place_in_message = (i / repeat, of);
        let packet = packet(
            place,
            time,
            hosts,
            opcode,
            psn,
            place_in_message,
            (*id, syndrome),
            words,
        );
        if !is_cm {
            items.push(Item::Packet(packet));
            continue;
        }
        let management = Management {
            packet: 0,
            name: ["REQ", "REP", "RTU", "REJ", "DREQ", "DREP", "MRA"]
                [CM.iter().position(|cm| *cm == operation).unwrap()],
            local_id: words.get("local").map(|id| value(place, id)),
            remote_id: words.get("remote").map(|id| value(place, id)),
            local_qpn: words.get("qp").map(|qpn| Qpn::new(value(place, qpn))),
            starting_psn: words.get("psn").map(|_| first),
            service: None,
            reason: None,
        };
        items.push(Item::Management(packet, management));
    }
}

#[expect(clippy::too_many_arguments, reason = "all that makes a packet")]
fn packet(
    place: &str,
    time: Time,
    hosts: &str,
    opcode: Opcode,
    psn: Psn,
    (i, of): (u32, u32),
    (id, syndrome): (u16, u8),
    words: &BTreeMap<&str, &str>,
) -> Packet {
    let is_cm = opcode == Opcode::UD_SEND_ONLY && !words.contains_key("sqp");
    let carrier = carrier(place, words.get("carrier").copied());
    let qpn: u32 = match words.get("qp") {
        Some(_) if is_cm => 1,
        Some(qpn) => value(place, qpn),
        None => 1,
    };
    let syndrome = words
        .get("syndrome")
        .map_or(syndrome, |syndrome| value(place, syndrome));
    let msn: u32 = words.get("msn").map_or(0, |msn| value(place, msn));
    let [_, qpns @ ..] = qpn.to_be_bytes();
    let [_, psns @ ..] = psn.value().to_be_bytes();
    let [_, msns @ ..] = msn.to_be_bytes();
    let mtu = words
        .get("payload")
        .map_or(1024, |payload| value::<u32>(place, payload));
    let whole = words
        .get("length")
        .map_or(mtu * of, |length| value(place, length));
    let payload_bytes = match opcode {
        opcode if opcode.carries_data() && i + 1 == of => whole - mtu * (of - 1),
        opcode if opcode.carries_data() => mtu,
        opcode if opcode.is_cnp() => 16,
        _ => words.get("payload").map_or(0, |payload| value(place, payload)),
    };
    let ecn = ecn(place, words.get("ecn").copied());
    let dscp: u8 = words.get("dscp").map_or(26, |dscp| value(place, dscp));
    let vlan: Option<u16> = words.get("vlan").map(|vlan| value(place, vlan));
    let pcp: u16 = words.get("pcp").map_or(0, |pcp| value(place, pcp));
    let ack = u8::from(words.contains_key("ack")) << 7;
    let cut = words.contains_key("cut");
    let has_udp = carrier.has_ip();
    let seen = if cut {
        roce_wire::ExtendedHeaders::NONE
    } else {
        opcode.extended()
    };
    let dma_length = words.get("dma").map_or(whole, |dma| value(place, dma));
    let roce = Roce {
        source: host(hosts.as_bytes()[0], carrier),
        destination: host(*hosts.as_bytes().last().unwrap(), carrier),
        bth: Bth([
            opcode.0, 0x40, 0xff, 0xff, 0, qpns[0], qpns[1], qpns[2], ack, psns[0], psns[1], psns[2],
        ]),
        aeth: Aeth([syndrome, msns[0], msns[1], msns[2]]),
        dma_length: if seen.has(roce_wire::ExtendedHeaders::RETH) {
            dma_length
        } else {
            0
        },
        source_qpn: match words.get("sqp") {
            Some(sqp) => value(place, sqp),
            None => u32::from(is_cm),
        },
        payload_bytes,
        vni: words.get("vni").map(|vni| value(place, vni)),
        vlan: vlan.map(|vlan| VlanTag(vlan | pcp << 13)),
        udp_source_port: if has_udp {
            words.get("sport").map_or(0xc123, |sport| value(place, sport))
        } else {
            0
        },
        ip_id: match words.get("id") {
            Some(id) => value(place, id),
            None if carrier == Carrier::RoceV2Ipv4 => id,
            None => 0,
        },
        traffic_class: if carrier == Carrier::InfinibandLocal {
            0
        } else {
            dscp << 2 | ecn
        },
        hop_limit: words.get("ttl").map_or(64, |ttl| value(place, ttl)),
        carrier,
        through: if vlan.is_some() {
            Through::VLAN
        } else {
            Through::NOTHING
        },
        seen,
        ..Roce::default()
    };
    // Ethernet, IPv4 and UDP, or the LRH alone; the others do not matter here.
    let before = if carrier == Carrier::InfinibandLocal {
        8
    } else {
        14 + 20 + 8
    };
    Packet {
        time,
        tap: TapId(words.get("tap").map_or(0, |tap| value(place, tap))),
        wire_bytes: before + roce.transport_bytes(),
        path: words.get("path").map_or(1, |path| value(place, path)),
        extended: 0,
        flags: PacketFlags::default().with(PacketFlags::CUT, cut),
        icrc: words.get("icrc").map(|icrc| *icrc == "good"),
        roce,
    }
}

fn carrier(place: &str, name: Option<&str>) -> Carrier {
    match name {
        None => Carrier::RoceV2Ipv4,
        Some("v6") => Carrier::RoceV2Ipv6,
        Some("v1") => Carrier::RoceV1,
        Some("ib") => Carrier::InfinibandLocal,
        Some(other) => panic!("{place}: unknown carrier '{other}'"),
    }
}

fn ecn(place: &str, name: Option<&str>) -> u8 {
    match name {
        None | Some("ect0") => 2,
        Some("not") => 0,
        Some("ect1") => 1,
        Some("ce") => 3,
        Some(other) => panic!("{place}: unknown ecn '{other}'"),
    }
}

/// The operations by name, and the low five bits of their opcodes.
const OPERATIONS: [(&str, u8); 25] = [
    ("send-first", 0x00),
    ("send-middle", 0x01),
    ("send-last", 0x02),
    ("send-last-imm", 0x03),
    ("send-only", 0x04),
    ("send-only-imm", 0x05),
    ("write-first", 0x06),
    ("write-middle", 0x07),
    ("write-last", 0x08),
    ("write-last-imm", 0x09),
    ("write-only", 0x0a),
    ("write-only-imm", 0x0b),
    ("read", 0x0c),
    ("read-response-first", 0x0d),
    ("read-response-middle", 0x0e),
    ("read-response-last", 0x0f),
    ("read-response-only", 0x10),
    ("ack", 0x11),
    ("atomic-ack", 0x12),
    ("cmp-swap", 0x13),
    ("fetch-add", 0x14),
    ("send-last-inv", 0x16),
    ("send-only-inv", 0x17),
    ("flush", 0x1c),
    ("atomic-write", 0x1d),
];

/// The opcode of packet `i` of a message of `of` packets.
fn opcode(place: &str, name: &str, i: u32, of: u32) -> Opcode {
    if let Some(code) = name.strip_prefix("opcode-") {
        return Opcode(value(place, code));
    }
    match name {
        "cnp" => return Opcode::CNP,
        "ib-cnp" => return Opcode::INFINIBAND_CNP,
        _ => {}
    }
    let services = [("uc-", 0x20), ("ud-", 0x60), ("xrc-", 0xa0)];
    let (name, service) = services
        .iter()
        .find_map(|(prefix, service)| Some((name.strip_prefix(prefix)?, *service)))
        .unwrap_or((name, 0));
    let part = match (i, i + 1 == of) {
        (0, true) => "only",
        (0, false) => "first",
        (_, false) => "middle",
        (_, true) => "last",
    };
    let name = match name {
        "send" | "write" | "read-response" => format!("{name}-{part}"),
        "nak" | "rnr" => "ack".to_owned(),
        _ => name.to_owned(),
    };
    let low = OPERATIONS.iter().find(|(known, _)| *known == name);
    Opcode(
        low.unwrap_or_else(|| panic!("{place}: unknown operation '{name}'"))
            .1
            | service,
    )
}
