//! Collectives with NCCL's messages: credits, data and steps.

use roce_capture::{Options, Reader};
use roce_sim::truth::{Collective, Message};
use roce_sim::{Scenario, simulate_in_memory};

use super::truth_of;

fn scenario(keys: &str, others: &str) -> String {
    format!(
        "duration = \"30ms\"\n[network]\nhosts = 4\nrate = \"100Gbps\"\n[nic]\nmtu = 4096\n[[training]]\nranks = \"h1..h4\"\ntransport \
         = \"nccl\"\nsteps = 4\ncompute = \"1ms\"\nspread = 0.01\nbytes = \"1MiB\"\n{keys}\n{others}"
    )
}

/// The only job of a scenario.
fn job(keys: &str, others: &str) -> Collective {
    truth_of(&scenario(keys, others)).collectives.remove(0)
}

/// Messages of each lane.
fn lanes(job: &Collective) -> Vec<Vec<&Message>> {
    let of = |lane: u32| job.messages.iter().filter(move |message| message.lane == lane);
    job.lanes.iter().map(|lane| of(lane.lane).collect()).collect()
}

/// A healthy `AllReduce` of 4 ranks in 2 channels. Each rank sends 2 (n - 1) / n of the data in each step (Patarasuk and Yuan,
/// 2009): of 1 MiB that is 2 x 3 / 4 x 1,048,576 = 1,572,864 bytes.
#[test]
fn data_follows_credits() {
    let job = job("channels = 2\nslice = \"32KiB\"", "");
    assert_eq!((job.steps.len(), job.lanes.len()), (4, 8));
    assert!(
        job.steps
            .iter()
            .all(|step| step.roots.is_empty() && step.cost_ns == 0)
    );
    for step in 0..4 {
        for rank in 0..4 {
            let own = job
                .messages
                .iter()
                .filter(|message| message.step == step && job.lanes[message.lane as usize].senders == [rank]);
            assert_eq!(own.map(|message| message.bytes).sum::<u64>(), 1_572_864);
        }
    }
    for messages in lanes(&job) {
        let mut credits: Vec<(u64, i64)> = Vec::new();
        for message in &messages {
            // A credit leaves, comes, and its data leaves after that.
            let order = [
                message.credit_posted,
                message.credit_out,
                message.credit_in,
                message.first_out,
                message.first_in,
                message.last_in,
                message.acknowledged,
            ];
            assert!(order.iter().all(Option::is_some), "{message:?}");
            assert!(order.is_sorted(), "{message:?}");
            assert!(message.filled < message.first_out && message.last_out < message.last_in);
            assert!(message.last_in < message.used);
            credits.push((message.credit_posted.unwrap(), 1));
            credits.push((message.used.unwrap(), -1));
        }
        // A ring has 8 steps of buffers, 2 for each slice: 4 credits whose buffers are not used.
        credits.sort_unstable();
        let mut unused = 0;
        let most = credits.iter().map(|(_, change)| {
            unused += change;
            unused
        });
        assert_eq!(most.max(), Some(4));
        // Buffers are used in turn.
        for (message, later) in messages.iter().zip(messages.iter().skip(4)) {
            assert_eq!(message.buffer_address, later.buffer_address);
            assert!(message.used < later.credit_posted);
        }
        for (message, next) in messages.iter().zip(messages.iter().skip(1)) {
            assert_ne!(message.buffer_address, next.buffer_address);
        }
    }
}

/// A write's first packet.
struct SeenWrite {
    opcode: u8,
    qpn: u32,
    address: u64,
    length: u32,
    payload: Vec<u8>,
}

/// Writes at a tap.
fn writes(toml: &str) -> Vec<SeenWrite> {
    let scenario = Scenario::parse(toml).unwrap();
    let (_, captures) = simulate_in_memory(&scenario).unwrap();
    let file = std::io::Cursor::new(captures[0].bytes.clone());
    let mut reader = Reader::from_read("tap", Box::new(file), &Options::default()).unwrap();
    let mut writes = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        for frame in batch.frames() {
            let bytes = batch.bytes(frame);
            // Ethernet 14, IPv4 20, UDP 8: the BTH is at 42, the RETH at 54, the payload at 70.
            let number = |at: usize, count: usize| {
                let bytes = bytes[at..at + count].iter();
                bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
            };
            if matches!(bytes[42], 0x06 | 0x0a | 0x0b) {
                writes.push(SeenWrite {
                    opcode: bytes[42],
                    qpn: u32::try_from(number(47, 3)).unwrap(),
                    address: number(54, 8),
                    length: u32::try_from(number(66, 4)).unwrap(),
                    payload: bytes[70..].to_vec(),
                });
            }
        }
    }
    writes
}

/// At a sender's port each write of data goes to the address of its credit, in every layout of elements; credits go from slot to slot.
#[test]
fn data_goes_to_the_address_of_its_credit() {
    for (version, element, slots, stride) in [
        ("2.3", 24, 128, 24),
        ("2.8", 32, 8, 32),
        ("2.12", 32, 64, 256),
        ("2.21", 64, 256, 512),
        ("2.24", 64, 256, 512),
        ("2.30", 64, 256, 512),
    ] {
        let keys = format!("version = \"{version}\"\nslice = \"16KiB\"\nearlier = 100");
        let toml = scenario(&keys, "[[tap]]\nat = \"h1\"\nsnaplen = 0\n");
        let toml = toml.replace("steps = 4", "steps = 1");
        let job = truth_of(&toml).collectives.remove(0);
        let lane = job.lanes.iter().find(|lane| lane.senders == [0]).unwrap();
        let writes = writes(&toml);
        let to = |qpn: u32| writes.iter().filter(move |write| write.qpn == qpn);
        let credits: Vec<_> = to(lane.sender_qpns[0]).collect();
        let data: Vec<_> = to(lane.receiver_qpns[0]).collect();
        // 1 MiB / 4 is 262,144 bytes: 8 rounds of 6 chunks of two slices.
        assert_eq!((credits.len(), data.len()), (96, 96), "{version}");
        let ring = credits[0].address - 100 % slots * stride;
        for ((credit, data), number) in credits.iter().zip(data).zip(100..) {
            assert_eq!((credit.opcode, credit.length), (0x0a, element));
            assert_eq!(credit.address, ring + number % slots * stride);
            let address = u64::from_le_bytes(credit.payload[..8].try_into().unwrap());
            assert_eq!((data.address, data.length), (address, 16_384), "{version}");
        }
    }
}

/// With adaptive routing data of more than 8192 bytes ends without immediate data, and an empty write with it follows. The order of its
/// bytes changed in 2.29.
#[test]
fn immediates_follow_data_where_packets_take_several_paths() {
    // 16,384 bytes.
    for (version, immediate) in [("2.24", [0x00, 0x40, 0, 0]), ("2.29", [0, 0, 0x40, 0x00])] {
        let keys = format!("version = \"{version}\"\nadaptive = true\nslice = \"16KiB\"");
        let toml = scenario(&keys, "[[tap]]\nat = \"h1\"\nsnaplen = 0\n");
        let writes = writes(&toml);
        let empty: Vec<_> = writes.iter().filter(|write| write.opcode == 0x0b).collect();
        assert!(!empty.is_empty());
        for write in empty {
            assert_eq!((write.address, write.length), (0, 0));
            assert_eq!(write.payload[..4], immediate);
        }
    }
}

/// Queue pairs are taken in turn by the number of the request, or each message is cut into pieces of multiples of 128 bytes.
#[test]
fn messages_are_spread_over_queue_pairs() {
    for (version, qps, pieces) in [("2.21", 3, vec![16_384]), ("2.19", 3, vec![5_504, 5_504, 5_376])] {
        let keys = format!("version = \"{version}\"\nqps = {qps}\nslice = \"16KiB\"");
        let toml = scenario(&keys, "[[tap]]\nat = \"h1\"\nsnaplen = 0\n");
        let job = truth_of(&toml).collectives.remove(0);
        let lane = job.lanes.iter().find(|lane| lane.senders == [0]).unwrap();
        let writes = writes(&toml);
        let place = |write: &SeenWrite| lane.receiver_qpns.iter().position(|qpn| *qpn == write.qpn);
        let sent: Vec<_> = writes
            .iter()
            .filter_map(|write| Some((place(write)?, write.length)))
            .collect();
        let expected = (0..).map(|at| (at % qps, pieces[at % pieces.len()]));
        let expected: Vec<_> = expected.take(sent.len()).collect();
        // The network interface takes turns between queue pairs, so that pieces keep their order in each alone.
        for pair in 0..qps {
            let of = |list: &[(usize, u32)]| -> Vec<_> {
                list.iter().filter(|(place, _)| *place == pair).copied().collect()
            };
            assert_eq!(of(&sent), of(&expected), "{version}");
        }
        // All credits come on the first queue pair.
        let credits = |pair: usize| {
            writes
                .iter()
                .filter(|write| write.qpn == lane.sender_qpns[pair])
                .count()
        };
        assert!(credits(0) > 0 && credits(1) == 0 && credits(2) == 0);
    }
}

/// A rank that is late by 2 ms makes its steps 2 ms longer, but for what the others' spread hides: they compute 1 ms, a hundredth more
/// or less.
#[test]
fn a_late_rank_costs_its_lateness() {
    for (place, expected) in [("gpu", "gpu"), ("host", "host")] {
        let late = format!("late = [{{ rank = 2, by = \"2ms\", steps = [1, 2], where = \"{place}\" }}]");
        let job = job(&late, "");
        for step in &job.steps {
            let is_late = matches!(step.step, 1 | 2);
            assert_eq!(step.roots.len(), usize::from(is_late));
            if is_late {
                assert!((1_960_000..2_040_000).contains(&step.cost_ns), "{}", step.cost_ns);
                let root = &step.roots[0];
                assert_eq!((root.kind.as_str(), root.host.as_str()), ("rank.late", "h3"));
                assert_eq!((root.rank, root.place.as_str()), (Some(2), expected));
            } else {
                assert!(step.cost_ns.abs() < 40_000, "{}", step.cost_ns);
            }
        }
        // The receiver's proxy has the operation long before the kernel, unless its host is late.
        let first = job
            .messages
            .iter()
            .find(|message| message.step == 1 && job.lanes[message.lane as usize].receiver == 2);
        let posted = first.and_then(|message| message.credit_posted).unwrap();
        let early = job.steps[1].kernel_start[2] - posted;
        assert_eq!(early > 2_000_000, place == "gpu", "{early}");
    }
}

/// A receiver that gives each buffer back 100 us late takes at least that long for every 4 messages of a lane: 1 MiB at slices of 16 KiB
/// are 96 messages, of which 92 wait, in 23 rounds.
#[test]
fn a_late_receiver_costs_its_rounds() {
    let keys = "slice = \"16KiB\"\nreceiver = [{ rank = 1, by = \"100us\" }]";
    let job = job(keys, "");
    for step in &job.steps {
        assert!(step.cost_ns > 23 * 100_000 * 9 / 10, "{}", step.cost_ns);
        assert_eq!(step.roots[0].kind, "receiver.late");
        assert_eq!((step.roots[0].rank, step.roots[0].host.as_str()), (Some(1), "h2"));
    }
}

/// A link of a tenth of the rate, and a lost packet, are the network's.
#[test]
fn a_slow_link_and_a_loss_are_roots() {
    let slow = job("", "[[host]]\nname = \"h4\"\nrate = \"10Gbps\"");
    for step in &slow.steps {
        // 1,572,864 bytes at 10 Gb/s take 1258 us.
        let own = slow
            .messages
            .iter()
            .filter(|message| message.step == step.step && slow.lanes[message.lane as usize].senders == [3]);
        let begin = own.clone().filter_map(|message| message.first_out).min();
        let end = own.filter_map(|message| message.last_in).max();
        assert!(end.unwrap() - begin.unwrap() > 1_258_000);
        assert!(step.cost_ns > 0);
        let roots: Vec<_> = step.roots.iter().map(|root| root.place.as_str()).collect();
        assert_eq!(roots, ["h4->leaf1"]);
    }
    let lossy = job(
        "",
        "[[impairment]]\nfrom = \"h2\"\nto = \"leaf1\"\ndrop = [500]\nonly = \"request\"",
    );
    let roots: Vec<_> = lossy.steps.iter().flat_map(|step| &step.roots).collect();
    assert_eq!(roots.len(), 1);
    assert_eq!(
        (roots[0].place.as_str(), roots[0].host.as_str()),
        ("h2->leaf1", "h2")
    );
}

/// Trees, all-to-all with several ranks on a host, and small messages come to their end, with 8 credits at once.
#[test]
fn other_collectives_end() {
    for (keys, lanes) in [
        // Three edges, both ways.
        ("collective = \"tree\"\nslice = \"16KiB\"", 6),
        ("collective = \"all-to-all\"\nslice = \"16KiB\"", 12),
        // 8 ranks: from each host to 6 ranks of others.
        (
            "collective = \"all-to-all\"\nslice = \"16KiB\"\nranks_per_host = 2",
            24,
        ),
        (
            "collective = \"all-to-all\"\nslice = \"16KiB\"\nranks_per_host = 2\nversion = \"2.14\"",
            24,
        ),
        ("protocol = \"ll\"\nslice = \"16KiB\"", 4),
    ] {
        let job = job(keys, "");
        assert_eq!((job.steps.len(), job.lanes.len()), (4, lanes), "{keys}");
        assert!(
            job.messages.iter().all(|message| message.used.is_some()),
            "{keys}"
        );
        assert!(job.lanes.iter().all(|lane| lane.credits == 8));
        for message in &job.messages {
            assert!(message.credit_in < message.first_out && message.last_in < message.used);
        }
    }
}

/// Two ranks of a host share a connection: a credit has two elements with their ranks, and the lengths of both come after their data.
#[test]
fn a_credit_for_two_ranks_has_two_tags() {
    let keys = "collective = \"all-to-all\"\nslice = \"16KiB\"\nranks_per_host = 2\nversion = \"2.30\"";
    let toml = scenario(keys, "[[tap]]\nat = \"h1\"\nsnaplen = 0\n");
    let job = truth_of(&toml).collectives.remove(0);
    let lane = job.lanes.iter().find(|lane| lane.senders == [0, 1]).unwrap();
    let writes = writes(&toml);
    let credit = writes
        .iter()
        .find(|write| write.qpn == lane.sender_qpns[0])
        .unwrap();
    // nreqs at 48 and tag at 52 of each element of 64 bytes.
    assert_eq!(credit.length, 128);
    assert_eq!((credit.payload[48], credit.payload[52]), (2, 0));
    assert_eq!((credit.payload[64 + 48], credit.payload[64 + 52]), (2, 1));
    let data: Vec<_> = writes
        .iter()
        .filter(|write| write.qpn == lane.receiver_qpns[0])
        .collect();
    let opcodes: Vec<_> = data.iter().take(3).map(|write| write.opcode).collect();
    assert_eq!(opcodes, [0x06, 0x06, 0x0b]);
    let address = |at: usize| u64::from_le_bytes(credit.payload[at..at + 8].try_into().unwrap());
    assert_eq!((data[0].address, data[1].address), (address(0), address(64)));
    // Immediate data of four bytes, then two lengths of 16,384.
    assert_eq!(data[2].length, 8);
    assert_eq!(data[2].payload[..12], [0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0x40, 0, 0]);
}

/// With registered buffers credits come when the kernel has started; credits and ACKs may have a DSCP of their own.
#[test]
fn registered_buffers_wait_for_the_kernel() {
    let keys = "registered = true\ncredit_dscp = 46\nslice = \"16KiB\"";
    let truth = truth_of(&scenario(keys, ""));
    let job = &truth.collectives[0];
    for message in &job.messages {
        let receiver = job.lanes[message.lane as usize].receiver;
        let kernel = job.steps[message.step as usize].kernel_start[receiver as usize];
        assert!(message.credit_posted.unwrap() > kernel);
    }
    let dscps = truth
        .connections
        .iter()
        .map(|connection| (connection.a.dscp, connection.b.dscp));
    assert!(dscps.eq(std::iter::repeat_n((26, 46), 4)));
}

/// Two scenarios of one job. In `late-rank` rank 2 is late by 400 us from step 1 on: at least 360 us of it are a step's cost, since the others
/// compute 800 us, a hundredth more or less, and so hide 16 us at most. In `slow-link` each step waits for the link.
#[test]
fn two_scenarios_have_one_root_each() {
    let late = truth_of(include_str!("../../scenarios/late-rank.toml"));
    let slow = truth_of(include_str!("../../scenarios/slow-link.toml"));
    for (truth, kind, host, first) in [(&late, "rank.late", "h3", 1), (&slow, "network.late", "h4", 0)] {
        let job = &truth.collectives[0];
        assert_eq!(job.steps.len(), 6);
        for step in &job.steps {
            let roots = step
                .roots
                .iter()
                .map(|root| (root.kind.as_str(), root.host.as_str()));
            let expected = (step.step >= first).then_some((kind, host));
            assert!(roots.eq(expected), "{step:?}");
        }
    }
    let costs = late.collectives[0].steps.iter().skip(1).map(|step| step.cost_ns);
    assert!(costs.clone().all(|cost| (360_000..440_000).contains(&cost)));
}
