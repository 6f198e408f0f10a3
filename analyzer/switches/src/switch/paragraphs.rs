//! `show interface` of NX-OS and `show interfaces` of EOS: a paragraph of text for each interface.
//!
//! A paragraph begins with `Ethernet1/3 is up`. NX-OS writes a number before its name (`12 input discard`) below `RX` and `TX`; EOS does so
//! with commas (`0 input errors, 0 CRC`), and has packets by cast behind `Received` and `Sent`. The forms are those of both systems' command
//! references and of the texts that ntc-templates parses.

use roce_model::Counter;

use super::interface::counted;

/// Number of an interface: its counter, the value of the label behind `kind`, and the value in the counter's base unit.
pub(super) type InterfaceNumber = (Counter, Option<&'static str>, u64);

/// Kbit/s as bytes/s.
const KILOBIT: u64 = 125;

/// Words behind a number, and what it counts.
const NUMBERS: [(&str, Counter, Option<&str>); 18] = [
    ("interface resets", Counter::SwitchInterfaceLinkChanges, None),
    ("link status", Counter::SwitchInterfaceLinkChanges, None),
    ("CRC", Counter::SwitchInterfaceFcsErrors, None),
    ("CRC/FCS", Counter::SwitchInterfaceFcsErrors, None),
    ("input error", Counter::SwitchInterfaceErrors, Some("received")),
    ("input errors", Counter::SwitchInterfaceErrors, Some("received")),
    (
        "output error",
        Counter::SwitchInterfaceErrors,
        Some("transmitted"),
    ),
    (
        "output errors",
        Counter::SwitchInterfaceErrors,
        Some("transmitted"),
    ),
    (
        "input discard",
        Counter::SwitchInterfaceDiscards,
        Some("received"),
    ),
    (
        "input discards",
        Counter::SwitchInterfaceDiscards,
        Some("received"),
    ),
    (
        "output discard",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
    (
        "output discards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
    ("Rx pause", Counter::SwitchPauseReceivedFrames, None),
    ("PAUSE input", Counter::SwitchPauseReceivedFrames, None),
    ("Tx pause", Counter::SwitchPauseTransmittedFrames, None),
    ("PAUSE output", Counter::SwitchPauseTransmittedFrames, None),
    // EOS' packets of all casts, until those by cast are known.
    (
        "packets input",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
    ),
    (
        "packets output",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
    ),
];

/// Words behind a number of packets of one cast, and the cast.
const CASTS: [(&str, &str); 5] = [
    ("unicast packets", "unicast"),
    ("multicast packets", "multicast"),
    ("broadcast packets", "broadcast"),
    ("multicast", "multicast"),
    ("broadcasts", "broadcast"),
];

/// Gives `add` each interface with its numbers. False if the text has no paragraph with numbers.
pub(super) fn read(text: &str, add: &mut dyn FnMut(&str, &[InterfaceNumber])) -> bool {
    let mut is_known = false;
    let mut paragraph: Option<Paragraph<'_>> = None;
    for line in text.lines() {
        if let Some(next) = Paragraph::begun(line) {
            if let Some(done) = paragraph.replace(next) {
                is_known |= done.finish(add);
            }
        } else if let Some(paragraph) = &mut paragraph {
            paragraph.line(line);
        }
    }
    is_known | paragraph.is_some_and(|paragraph| paragraph.finish(add))
}

/// Interface whose lines are read.
struct Paragraph<'t> {
    name: &'t str,
    is_up: bool,
    /// The direction of the lines below `RX` or `TX`.
    is_sent: Option<bool>,
    has_counts: bool,
    /// Numbers of unicast packets have those of the other casts, too.
    has_all_casts: bool,
    numbers: Vec<InterfaceNumber>,
}

impl<'t> Paragraph<'t> {
    /// The paragraph that `NAME is up` or `NAME is down` begins.
    fn begun(line: &'t str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (name, "is", state) = (words.next()?, words.next()?, words.next()?) else {
            return None;
        };
        let state = state.trim_end_matches(',');
        let is_state = matches!(state, "up" | "down" | "administratively");
        (is_state && super::interface::Interface::parse(name).is_some()).then(|| Self {
            name,
            is_up: state == "up",
            is_sent: None,
            has_counts: false,
            has_all_casts: false,
            numbers: Vec::new(),
        })
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line
            .split_whitespace()
            .map(|word| word.trim_end_matches(','))
            .take(32)
            .collect();
        match words.as_slice() {
            ["RX"] | ["Received", ..] => self.is_sent = Some(false),
            ["TX"] | ["Sent", ..] => self.is_sent = Some(true),
            _ => {}
        }
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let behind = words.get(at + 1..).unwrap_or_default();
            match (*word, behind) {
                ("MTU", [mtu, "bytes", ..]) => self.gauge(Counter::SwitchInterfaceMtu, mtu, 1),
                // The bandwidth of a port without a link is one that it could have.
                ("BW", [rate, "Kbit" | "kbit", ..]) if self.is_up => {
                    self.gauge(Counter::SwitchInterfaceRate, rate, KILOBIT);
                }
                _ => {}
            }
            at += 1;
            let Some(value) = number(word) else {
                continue;
            };
            let is_word = |word: &&&str| number(word).is_none();
            let length = behind.iter().take_while(is_word).count().min(2);
            let both = behind.get(..length).unwrap_or_default().join(" ");
            let first = behind.first().copied().unwrap_or_default();
            if !self.count(&both, value) {
                self.count(first, value);
            }
        }
    }

    fn gauge(&mut self, counter: Counter, word: &str, unit: u64) {
        if let Some(value) = number(word) {
            self.numbers.push((counter, None, value.saturating_mul(unit)));
        }
    }

    /// Adds a count by the words behind it; false if they are not known.
    fn count(&mut self, words: &str, value: u64) -> bool {
        let received = Counter::SwitchInterfaceReceivedPackets;
        let sent = Counter::SwitchInterfaceTransmittedPackets;
        let cast = CASTS.iter().find(|(known, _)| *known == words);
        if let (Some((_, cast)), Some(is_sent)) = (cast, self.is_sent) {
            let counter = if is_sent { sent } else { received };
            self.numbers.push((counter, Some(cast), value));
            self.has_counts = true;
            return true;
        }
        if words == "bytes" {
            let counter = match self.is_sent {
                Some(true) => Counter::SwitchInterfaceTransmittedBytes,
                Some(false) => Counter::SwitchInterfaceReceivedBytes,
                None => return false,
            };
            self.numbers.push((counter, None, value));
            return true;
        }
        if let "packets input" | "packets output" = words {
            self.is_sent = Some(words.ends_with("output"));
            self.has_all_casts = true;
        }
        let Some((_, counter, detail)) = NUMBERS.iter().find(|(known, ..)| *known == words) else {
            return false;
        };
        self.numbers.push((*counter, *detail, value));
        self.has_counts = true;
        true
    }

    /// Gives the numbers; false if nothing was counted.
    fn finish(mut self, add: &mut dyn FnMut(&str, &[InterfaceNumber])) -> bool {
        let is_counted = self.has_counts && counted(self.name).is_some();
        if is_counted {
            if self.has_all_casts {
                self.unicast_alone(Counter::SwitchInterfaceReceivedPackets);
                self.unicast_alone(Counter::SwitchInterfaceTransmittedPackets);
            }
            let up = u64::from(self.is_up);
            self.numbers.push((Counter::SwitchInterfaceUp, None, up));
            add(self.name, &self.numbers);
        }
        self.has_counts
    }

    /// Takes packets of the other casts from those of all casts that EOS has.
    fn unicast_alone(&mut self, counter: Counter) {
        let is_other = |(known, cast, _): &&InterfaceNumber| *known == counter && *cast != Some("unicast");
        let others = self.numbers.iter().filter(is_other).map(|(.., value)| *value);
        let others = others.fold(0, u64::saturating_add);
        for (known, cast, value) in &mut self.numbers {
            if *known == counter && *cast == Some("unicast") {
                *value = value.saturating_sub(others);
            }
        }
    }
}

fn number(word: &str) -> Option<u64> {
    let is_number = word.len() <= 20 && word.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { word.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(String, Vec<InterfaceNumber>)> {
        let mut found = Vec::new();
        let is_known = read(text, &mut |name, numbers| {
            let mut numbers = numbers.to_vec();
            numbers.sort_unstable();
            found.push((name.to_owned(), numbers));
        });
        assert_eq!(is_known, !found.is_empty());
        found
    }

    fn sorted(mut numbers: Vec<InterfaceNumber>) -> Vec<InterfaceNumber> {
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn a_paragraph_of_nexus() {
        let text = "Ethernet1/3 is up\nadmin state is up, Dedicated Interface\n  MTU 9216 bytes, BW 100000000 Kbit, DLY 10 usec\n  3 interface resets\n  RX\n    \
                    10 unicast packets  12 multicast packets  3 broadcast packets\n    25 input packets  1000 bytes\n    0 jumbo packets  0 storm suppression packets\n    \
                    0 runts  0 giants  4 CRC  0 no buffer\n    5 input error  0 short frame  0 overrun   0 underrun  0 ignored\n    0 input with dribble  7 input discard\n    \
                    901 Rx pause\n  TX\n    20 unicast packets  0 multicast packets  1 broadcast packets\n    21 output packets  4000 bytes\n    0 output error  0 collision\n    \
                    0 babble  33 output discard\n    6 Tx pause\nVlan10 is up, line protocol is up\n  MTU 1500 bytes\n";
        let found = all(text);
        let expected = vec![
            (Counter::SwitchInterfaceMtu, None, 9_216),
            // 100 Gbit/s are 12.5 GB/s.
            (Counter::SwitchInterfaceRate, None, 12_500_000_000),
            (Counter::SwitchInterfaceLinkChanges, None, 3),
            (Counter::SwitchInterfaceReceivedPackets, Some("unicast"), 10),
            (Counter::SwitchInterfaceReceivedPackets, Some("multicast"), 12),
            (Counter::SwitchInterfaceReceivedPackets, Some("broadcast"), 3),
            (Counter::SwitchInterfaceReceivedBytes, None, 1_000),
            (Counter::SwitchInterfaceFcsErrors, None, 4),
            (Counter::SwitchInterfaceErrors, Some("received"), 5),
            (Counter::SwitchInterfaceDiscards, Some("received"), 7),
            (Counter::SwitchPauseReceivedFrames, None, 901),
            (Counter::SwitchInterfaceTransmittedPackets, Some("unicast"), 20),
            (Counter::SwitchInterfaceTransmittedPackets, Some("multicast"), 0),
            (Counter::SwitchInterfaceTransmittedPackets, Some("broadcast"), 1),
            (Counter::SwitchInterfaceTransmittedBytes, None, 4_000),
            (Counter::SwitchInterfaceErrors, Some("transmitted"), 0),
            (Counter::SwitchInterfaceDiscards, Some("transmitted"), 33),
            (Counter::SwitchPauseTransmittedFrames, None, 6),
            (Counter::SwitchInterfaceUp, None, 1),
        ];
        assert_eq!(found, [("Ethernet1/3".to_owned(), sorted(expected))]);
    }

    #[test]
    fn a_paragraph_of_eos() {
        let text = "Ethernet1/1 is down, line protocol is down (notconnect)\n  Ethernet MTU 9214 bytes, BW 100000000 kbit\n  5 minutes input rate 0 bps (0.0% with framing overhead), 0 packets/sec\n     \
                    3403 packets input, 436080 bytes\n     Received 3 broadcasts, 400 multicast\n     2 input errors, 1 CRC, 0 alignment, 0 symbol, 5 input discards\n     77 PAUSE input\n     \
                    9 packets output, 600 bytes\n     Sent 0 broadcasts, 9 multicast\n     0 output errors, 0 collisions\n     0 late collision, 0 deferred, 66 output discards\n     1 PAUSE output\n";
        let expected = vec![
            (Counter::SwitchInterfaceMtu, None, 9_214),
            // 3403 packets of all casts, less 3 and 400.
            (Counter::SwitchInterfaceReceivedPackets, Some("unicast"), 3_000),
            (Counter::SwitchInterfaceReceivedPackets, Some("broadcast"), 3),
            (Counter::SwitchInterfaceReceivedPackets, Some("multicast"), 400),
            (Counter::SwitchInterfaceReceivedBytes, None, 436_080),
            (Counter::SwitchInterfaceErrors, Some("received"), 2),
            (Counter::SwitchInterfaceFcsErrors, None, 1),
            (Counter::SwitchInterfaceDiscards, Some("received"), 5),
            (Counter::SwitchPauseReceivedFrames, None, 77),
            (Counter::SwitchInterfaceTransmittedPackets, Some("unicast"), 0),
            (Counter::SwitchInterfaceTransmittedPackets, Some("broadcast"), 0),
            (Counter::SwitchInterfaceTransmittedPackets, Some("multicast"), 9),
            (Counter::SwitchInterfaceTransmittedBytes, None, 600),
            (Counter::SwitchInterfaceErrors, Some("transmitted"), 0),
            (Counter::SwitchInterfaceDiscards, Some("transmitted"), 66),
            (Counter::SwitchPauseTransmittedFrames, None, 1),
            (Counter::SwitchInterfaceUp, None, 0),
        ];
        assert_eq!(all(text), [("Ethernet1/1".to_owned(), sorted(expected))]);
    }

    #[test]
    fn other_texts_have_no_interfaces() {
        for text in [
            "",
            "leaf1 is up\n",
            "Ethernet1/1 is up\nadmin state is up\n",
            "5 input error\n",
        ] {
            assert_eq!(all(text), [], "{text}");
        }
    }
}
