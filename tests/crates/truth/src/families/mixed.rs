//! Family `mixed`: anything with anything. A seed becomes a scenario of the simulator; the same seed gives the same one.
//!
//! Every fifth is clean: enough room on every link, ECN set up, nothing lost, a tap that sees everything.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::plan::RandomScenario;

/// Data packets that the narrowest link carries in one run, at the most.
const MAX_PACKETS: u64 = 12_000;

/// The scenario of a seed.
pub(crate) fn scenario(seed: u64) -> RandomScenario {
    let mut draw = Draw::new(seed, "scenario");
    let clean = draw.one_in(5);
    let network = Network::draw(&mut draw, clean);
    let mut toml = String::new();
    network.write(&mut toml, seed);
    let arguments = if clean {
        fine(&mut draw, &network, &mut toml)
    } else {
        anything(&mut draw, &network, &mut toml)
    };
    RandomScenario {
        family: "mixed",
        seed,
        toml,
        healthy: clean,
        arguments,
        counters: false,
        alone: false,
        root: None,
    }
}

/// Network of the plan, on which everything else depends.
struct Network {
    hosts: u64,
    /// 0: a cable; 1: one switch; more: leaves below two spines.
    leaves: u64,
    gigabits: u64,
    mtu: u64,
    /// In microseconds.
    duration: u64,
    ipv6: bool,
    vlan: bool,
}

impl Network {
    fn draw(draw: &mut Draw, clean: bool) -> Self {
        let hosts = if draw.one_in(3) {
            2
        } else {
            draw.between(3, if clean { 6 } else { 16 })
        };
        let leaves = match hosts {
            2 => draw.below(2),
            _ if draw.one_in(4) => 2,
            _ => 1,
        };
        let gigabits = draw.of(&[10, 25, 40, 50, 100]);
        let mtu = if gigabits > 40 || draw.one_in(2) {
            4096
        } else {
            1024
        };
        // Time in which a full link carries MAX_PACKETS, but 2 to 8 ms; sometimes longer, with pauses in
        // between.
        let full = MAX_PACKETS * (mtu + 70) * 8 / (gigabits * 1_000);
        Self {
            hosts,
            leaves,
            gigabits,
            mtu,
            duration: full.clamp(2_000, 8_000),
            ipv6: draw.one_in(6),
            vlan: draw.one_in(6),
        }
    }

    fn write(&self, toml: &mut String, seed: u64) {
        let topology = match self.leaves {
            0 => "direct",
            1 => "leaf",
            _ => "leaf-spine",
        };
        let _ = writeln!(
            toml,
            "title = \"random {seed}\"\nseed = {seed}\nduration = \"{}us\"\n\n[network]\nhosts = {}\ntopology = \
             \"{topology}\"\nrate = \"{}Gbps\"\nipv6 = {}",
            self.duration, self.hosts, self.gigabits, self.ipv6
        );
        if self.leaves > 1 {
            let _ = writeln!(
                toml,
                "leaves = {}\nspines = 2\nuplink_rate = \"{}Gbps\"",
                self.leaves,
                self.gigabits * self.hosts.div_ceil(2)
            );
        }
        if self.vlan {
            toml.push_str("vlan = 100\n");
        }
    }

    /// The switch at the other end of a host's link; the other host, when there is none.
    fn neighbour(&self, host: u64) -> String {
        if self.leaves == 0 {
            return format!("h{}", 3 - host);
        }
        let block = self.hosts.div_ceil(self.leaves);
        format!("leaf{}", (host - 1) / block + 1)
    }

    /// Time of a message of `bytes` on a link, in microseconds, rounded up.
    fn time_of(&self, bytes: u64) -> u64 {
        (bytes * 8).div_ceil(self.gigabits * 1_000).max(1)
    }
}

/// Traffic that no link is too narrow for, seen by one tap.
fn fine(draw: &mut Draw, network: &Network, toml: &mut String) -> Vec<String> {
    let _ = writeln!(toml, "\n[nic]\nmtu = {}", network.mtu);
    let op = draw.of(&["write", "send", "read"]);
    let message = draw.of(&[512_u64, 4_096, 16_384, 65_536, 262_144]);
    let pairs = network.hosts / 2;
    let qps = draw.between(1, 4);
    let _ = writeln!(
        toml,
        "\n[[flow]]\nfrom = \"h1..h{pairs}\"\nto = \"h{}..h{}\"\npattern = \"zip\"\nqps = {qps}\nop = \"{op}\"\nmessage = \
         {message}\njitter = \"50us\"",
        pairs + 1,
        pairs * 2
    );
    if draw.one_in(2) {
        // At most half of the link's rate.
        let interval = network.time_of(message * qps * 2) + draw.below(20);
        let _ = writeln!(toml, "interval = \"{interval}us\"\npoisson = {}", draw.one_in(2));
    } else {
        let _ = writeln!(toml, "outstanding = {}", draw.between(1, 4));
    }
    identities(draw, toml, qps);
    let at = if draw.one_in(2) { 1 } else { pairs + 1 };
    let snaplen = draw.of(&[0_u64, 96, 128, 192]);
    let _ = writeln!(toml, "\n[[tap]]\nat = \"h{at}\"\nsnaplen = {snaplen}");
    Vec::new()
}

/// Numbers and ports of the queue pairs of a flow table.
fn identities(draw: &mut Draw, toml: &mut String, qps: u64) {
    let psn = if draw.one_in(4) { "zero" } else { "random" };
    let qpn = draw.of(&["random", "random", "sequential", "same"]);
    let port = if draw.one_in(4) && qps < 8 {
        "random"
    } else {
        "kernel"
    };
    let _ = writeln!(toml, "psn = \"{psn}\"\nqpn = \"{qpn}\"\nsource_port = \"{port}\"");
    if draw.one_in(6) {
        toml.push_str("cm = true\n");
    }
}

/// Traffic with which anything can go wrong.
fn anything(draw: &mut Draw, network: &Network, toml: &mut String) -> Vec<String> {
    let mut arguments = Vec::new();
    let lossless = network.leaves > 0 && draw.one_in(5);
    if network.leaves > 0 {
        switches(draw, network, lossless, toml);
    }
    adapters(draw, network, lossless, toml);
    let receiver = network.hosts;
    flows(draw, network, receiver, toml);
    if draw.one_in(3) {
        impairments(draw, network, receiver, toml);
    }
    if lossless && draw.one_in(2) {
        let _ = writeln!(
            toml,
            "\n[[host]]\nname = \"h{receiver}\"\ndrain = \"{}Gbps\"",
            network.gigabits.div_ceil(2)
        );
    }
    if lossless || draw.one_in(2) {
        arguments.extend(["--link-rate".to_owned(), format!("{}G", network.gigabits)]);
    }
    taps(draw, network, receiver, lossless, toml);
    arguments
}

fn switches(draw: &mut Draw, network: &Network, lossless: bool, toml: &mut String) {
    let kmin = draw.of(&[5_u64, 20, 50]);
    let _ = writeln!(
        toml,
        "\n[switch]\necn = {}\nkmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = {}",
        !draw.one_in(5),
        kmin * draw.of(&[2, 8, 20]),
        draw.of(&["0.01", "0.1", "0.2", "1.0"])
    );
    if lossless {
        let xoff = draw.of(&[40_u64, 100]) * (1 + network.gigabits / 50);
        let _ = writeln!(
            toml,
            "pause = \"pfc\"\nxoff = \"{xoff}KB\"\nxon = \"{}KB\"",
            xoff / 2
        );
    } else if draw.one_in(4) {
        let _ = writeln!(toml, "queue_limit = \"{}KB\"", draw.of(&[100, 300, 1_000]));
    }
}

fn adapters(draw: &mut Draw, network: &Network, lossless: bool, toml: &mut String) {
    let _ = writeln!(
        toml,
        "\n[nic]\nmtu = {}\nack_every = {}\nack_coalesce = {}\ntimeout = \"{}us\"\nrnr_timer = {}",
        network.mtu,
        draw.of(&[0, 0, 4, 16]),
        draw.of(&[1, 1, 4]),
        if lossless {
            20_000
        } else {
            draw.of(&[300, 1_000, 2_000])
        },
        draw.of(&[1, 4, 8])
    );
    if draw.one_in(6) {
        toml.push_str("recovery = \"selective\"\n");
    }
    if draw.one_in(6) {
        toml.push_str("cnp_after_nak = true\n");
    }
    let _ = writeln!(
        toml,
        "window = \"{}KB\"\n\n[dcqcn]\nset = \"{}\"\nnotify = {}\nreact = {}\necn = {}",
        draw.of(&[128, 512, 4_096]),
        draw.of(&["paper", "ns3", "nvidia"]),
        !draw.one_in(8),
        !draw.one_in(8),
        !draw.one_in(8)
    );
}

fn flows(draw: &mut Draw, network: &Network, receiver: u64, toml: &mut String) {
    let senders = draw.between(1, network.hosts - 1);
    let qps = match network.hosts {
        2 => draw.of(&[1, 2, 4, 16, 32]),
        _ => draw.between(1, 4),
    };
    let op = draw.of(&["write", "write", "send", "read"]);
    let message = draw.of(&[256_u64, 2_048, 8_192, 32_768, 65_536, 262_144, 1_048_576]);
    let _ = writeln!(
        toml,
        "\n[[flow]]\nfrom = \"h1..h{senders}\"\nto = \"h{receiver}\"\nqps = {qps}\nop = \"{op}\"\nmessage = {message}\njitter = \
         \"{}us\"",
        draw.of(&[0, 10, 300])
    );
    if op != "read" && draw.one_in(4) {
        toml.push_str("direction = \"both\"\n");
    }
    if draw.one_in(3) {
        let percent = draw.of(&[30, 80, 150]);
        let interval = network.time_of(message * qps * senders) * 100 / percent + 1;
        let burst = draw.of(&[1, 1, 4, 16]);
        let _ = writeln!(
            toml,
            "interval = \"{}us\"\nburst = {burst}\npoisson = {}",
            interval * burst,
            draw.one_in(2)
        );
    } else {
        let _ = writeln!(toml, "outstanding = {}", draw.between(1, 4));
    }
    if op == "send" && draw.one_in(3) {
        let each = network.time_of(message * qps * senders) * draw.of(&[1, 2]);
        let _ = writeln!(toml, "receives = {}\nrefill = \"{each}us\"", draw.of(&[4, 16]));
    }
    if draw.one_in(8) && !toml.contains("refill") {
        let _ = writeln!(toml, "reuse = \"{}us\"", network.duration / 2);
    }
    identities(draw, toml, qps);
    if network.hosts > 3 && draw.one_in(2) {
        let to = draw.between(2, network.hosts - 1);
        let (service, op, message) = draw.of(&[
            ("rc", "write", 16_384_u64),
            ("rc", "read", 65_536),
            ("rc", "send", 4_096),
            ("ud", "send", 1_024),
            ("uc", "write", 8_192),
        ]);
        let _ = writeln!(
            toml,
            "\n[[flow]]\nfrom = \"h1\"\nto = \"h{to}\"\nservice = \"{service}\"\nop = \"{op}\"\nmessage = {message}\ninterval = \
             \"{}us\"",
            network.time_of(message * 3) + draw.below(30)
        );
    }
}

fn impairments(draw: &mut Draw, network: &Network, receiver: u64, toml: &mut String) {
    let from = network.neighbour(receiver);
    let (from, to) = if draw.one_in(4) {
        ("h1".to_owned(), network.neighbour(1))
    } else {
        (from, format!("h{receiver}"))
    };
    let what = match draw.below(5) {
        0 => format!("drop = [{}, {}]", draw.between(20, 200), draw.between(201, 900)),
        1 => format!(
            "reorder = {}\nreorder_delay = \"{}us\"",
            draw.of(&["0.001", "0.01"]),
            draw.of(&[1, 5, 20])
        ),
        2 => "corrupt = 0.001".to_owned(),
        _ => format!("loss = {}", draw.of(&["0.0005", "0.002", "0.01"])),
    };
    let only = draw.of(&["all", "all", "data", "ack"]);
    let _ = writeln!(
        toml,
        "\n[[impairment]]\nfrom = \"{from}\"\nto = \"{to}\"\nonly = \"{only}\"\n{what}"
    );
}

fn taps(draw: &mut Draw, network: &Network, receiver: u64, lossless: bool, toml: &mut String) {
    let mut places = match draw.below(5) {
        0 => vec!["h1".to_owned()],
        1 => vec![format!("h{receiver}")],
        2 if network.leaves > 0 => vec![format!("{}:h{receiver}", network.neighbour(receiver))],
        3 => vec![format!("h{receiver}"), "h1".to_owned()],
        _ if network.leaves > 0 => vec![format!("{}:h1", network.neighbour(1)), format!("h{receiver}")],
        _ => vec!["h1".to_owned()],
    };
    if draw.one_in(2) {
        places.reverse();
    }
    for (number, at) in places.iter().enumerate() {
        let mirrored = at.contains(':') && draw.one_in(2);
        let mut snaplen = draw.of(&[0_u64, 64, 96, 96, 128, 128, 192]);
        if mirrored && snaplen > 0 {
            // The mirror puts 50 bytes before the frame.
            snaplen = draw.of(&[0, 128, 192]);
            if network.ipv6 && snaplen == 128 {
                // BTH and AETH would end at byte 140.
                snaplen = 192;
            }
        }
        if network.ipv6 && snaplen == 64 {
            // BTH and AETH end at byte 78, behind a VLAN tag at 82: a tap that shows less shows nothing.
            snaplen = 96;
        }
        let _ = writeln!(toml, "\n[[tap]]\nat = \"{at}\"\nsnaplen = {snaplen}");
        if mirrored {
            // A VXLAN alone is taken for an overlay network, and its identifier for a part of the flow.
            let _ = writeln!(toml, "mirror = \"{}\"", draw.of(&["erspan2", "erspan3"]));
        }
        if lossless {
            toml.push_str("pause_frames = true\n");
        }
        if number > 0 {
            let milliseconds = draw.below(100);
            let _ = writeln!(
                toml,
                "clock_offset_ns = {}\nclock_drift_ppb = {}",
                draw.below(1_000_000) + milliseconds * 1_000_000,
                draw.of(&[0, 500, 20_000])
            );
        }
        let loss = match draw.below(10) {
            0 => format!("loss = {}", draw.of(&["0.001", "0.01"])),
            1 => format!(
                "loss = {{ every = {}, lose = {} }}",
                draw.between(300, 3_000),
                draw.between(1, 20)
            ),
            2 => format!(
                "loss = {{ from = \"0us\", to = \"{}us\" }}",
                network.duration / draw.of(&[4, 2])
            ),
            _ => continue,
        };
        let report = draw.of(&["silent", "silent", "statistics", "packets"]);
        let _ = writeln!(toml, "{loss}\nloss_report = \"{report}\"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_sim::Scenario;

    #[test]
    fn every_seed_is_a_scenario() {
        let mut clean = 0;
        for seed in 0..1_000 {
            let found = scenario(seed);
            assert_eq!(found, scenario(seed));
            let parsed = Scenario::parse(&found.toml);
            assert!(parsed.is_ok(), "{seed}: {parsed:?}\n{}", found.toml);
            clean += u32::from(found.healthy);
        }
        // A fifth of 1,000 is 200, its standard deviation sqrt(1000 * 0.2 * 0.8) = 13.
        assert!((150..250).contains(&clean), "{clean}");
    }
}
