//! Queue pairs and connections of one rank, put together from lines of several threads.
//!
//! A rank first prints its connections (`Channel 02/0 : 3[3] -> 11[3] [send] via NET/IB/0`), then its service thread connects them and
//! prints each queue pair, in their order (`src/transport/net.cc`, `ncclTransportP2pSetup` in `src/transport.cc`). Only the sending side
//! prints its queue pairs. Their lines name neither rank nor channel: both follow from the connections of the same batch.

use std::collections::BTreeSet;

use roce_model::Address;

use super::line::number;

/// Connections and queue pairs of a batch: a rank has one connection for each of 64 channels and each peer.
const MAX_BATCH: usize = 1 << 16;

/// A queue pair that a rank made to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePair {
    /// The line of the log, from 1 on.
    pub line: usize,
    /// The host that wrote it, and the process.
    pub process: Option<(String, u32)>,
    /// The CUDA device of the thread that wrote it.
    pub device: Option<u32>,
    /// NCCL's network device: several adapters can be one.
    pub network_device: u32,
    /// The adapter, by its place in NCCL's list; to 2.18 that of the network device.
    pub adapter: u32,
    /// The name of the adapter, where the host printed its list.
    pub adapter_name: Option<String>,
    /// The port of the adapter.
    pub port: u32,
    /// The number of the queue pair.
    pub number: u32,
    /// The address of the adapter's port: from the GID, or the LID.
    pub address: Option<Address>,
    /// The index of the GID.
    pub gid_index: Option<u32>,
    /// The rank.
    pub rank: Option<u32>,
    /// The rank that it sends to.
    pub peer_rank: Option<u32>,
    /// The place of the communicator in the list of all.
    pub communicator: Option<usize>,
    /// The channel of the communicator.
    pub channel: Option<u32>,
}

/// `NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 576 mtu 3 GID 3 (0/1064A8C0FFFF0000) fifoRkey=...`, to 2.18 `NET/IB: Dev 1 Port 1 qpn 3038 ...`;
/// `None`: the text is none of these.
///
/// Lines with `query_ece=` alone repeat a number. Those with `set_ece=` have the number of the other side's queue pair (2.19 to 2.27),
/// or the own one (later): they are left alone.
pub(super) fn queue_pair(text: &str) -> Option<QueuePair> {
    let (head, about) = text.split_once(" qpn ")?;
    if !head.contains("Dev ") || !about.contains(" mtu ") {
        return None;
    }
    let network_device = number(head, "Dev ")?;
    // "IbDev" ends with "Dev": the network device comes first.
    let adapter = number(head, "IbDev ").or_else(|| number(head, "IBDev "));
    Some(QueuePair {
        network_device,
        adapter: adapter.unwrap_or(network_device),
        port: number(head, "Port ").unwrap_or(1),
        number: about.split_whitespace().next()?.parse().ok()?,
        address: gid(about).or_else(|| number(about, " LID ").map(Address::lid)),
        gid_index: number(about, " GID "),
        ..QueuePair::default()
    })
}

/// `GID 3 (80FE/46442FFEFF47BB4E)`: the two halves of a GID as numbers of a little-endian machine. All that NCCL runs on are.
fn gid(text: &str) -> Option<Address> {
    let (_, rest) = text.split_once(" GID ")?;
    let (_, rest) = rest.split_once('(')?;
    let (halves, _) = rest.split_once(')')?;
    let (prefix, interface) = halves.split_once('/')?;
    let half = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&half(prefix)?.to_le_bytes());
    octets[8..].copy_from_slice(&half(interface)?.to_le_bytes());
    Some(Address::v6(octets))
}

/// A connection over the network that a rank opens to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Send {
    pub(super) channel: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) network_device: u32,
}

/// A connection in a line's text; `None`: there is none that sends over an adapter. The second value: the rank whose process sends for
/// this one, over an adapter of its own (PXN: `via NET/IB/0(3)`).
pub(super) fn send(text: &str) -> Option<(Send, Option<u32>)> {
    let (channel, rest) = text.strip_prefix("Channel ")?.split_once(" : ")?;
    let (from, rest) = rest.split_once(" -> ")?;
    let (to, rest) = rest.split_once(" [send] via NET/IB")?;
    let rank = |text: &str| text.trim().split('[').next()?.parse::<u32>().ok();
    // The rest of the network's name, such as `ext_v8`.
    let (_, device) = rest.split_once('/')?;
    let digits = |text: &str| {
        let end = text
            .find(|glyph: char| !glyph.is_ascii_digit())
            .unwrap_or(text.len());
        text.get(..end)?.parse::<u32>().ok()
    };
    let by = device
        .split(['/', ' '])
        .next()
        .and_then(|device| device.split_once('('))
        .and_then(|(_, rank)| digits(rank));
    let found = Send {
        channel: channel.split('/').next()?.trim().parse().ok()?,
        from: rank(from)?,
        to: rank(to)?,
        network_device: digits(device)?,
    };
    Some((found, by.filter(|rank| *rank != found.from)))
}

/// Connections of a rank, and the queue pairs that were made for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub(super) sends: Vec<Send>,
    /// Places of queue pairs in the list of all.
    pub(super) pairs: Vec<usize>,
    is_cut: bool,
}

impl Batch {
    pub(super) fn send(&mut self, send: Send) {
        if self.sends.len() < MAX_BATCH {
            self.sends.push(send);
        } else {
            self.is_cut = true;
        }
    }

    pub(super) fn pair(&mut self, place: usize) {
        if self.pairs.len() < MAX_BATCH {
            self.pairs.push(place);
        } else {
            self.is_cut = true;
        }
    }

    /// The rank that all connections come from.
    pub(super) fn rank(&self) -> Option<u32> {
        let first = self.sends.first()?.from;
        self.sends.iter().all(|send| send.from == first).then_some(first)
    }

    /// Gives the batch's queue pairs their peers and channels. `per_connection`: queue pairs for each connection and adapter.
    pub(super) fn join(&self, all: &mut [QueuePair], per_connection: usize) {
        if self.is_cut {
            return;
        }
        let devices: BTreeSet<u32> = self.sends.iter().map(|send| send.network_device).collect();
        for device in devices {
            let sends: Vec<&Send> = self
                .sends
                .iter()
                .filter(|send| send.network_device == device)
                .collect();
            let of_device =
                |place: &&usize| all.get(**place).is_some_and(|pair| pair.network_device == device);
            let pairs: Vec<usize> = self.pairs.iter().filter(of_device).copied().collect();
            let adapters: BTreeSet<u32> = pairs
                .iter()
                .filter_map(|place| all.get(*place))
                .map(|pair| pair.adapter)
                .collect();
            let each = per_connection.saturating_mul(adapters.len()).max(1);
            let is_whole = pairs.len() == sends.len().saturating_mul(each);
            let first = sends.first().map(|send| send.to);
            let only = first.filter(|to| sends.iter().all(|send| send.to == *to));
            for (number, place) in pairs.iter().enumerate() {
                let Some(pair) = all.get_mut(*place) else { continue };
                match sends.get(number / each).filter(|_| is_whole) {
                    Some(send) => (pair.peer_rank, pair.channel) = (Some(send.to), Some(send.channel)),
                    None => pair.peer_rank = only,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_pairs_of_several_versions() {
        // 2.28 (two hosts with ConnectX-7), as public logs have it.
        let text = "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 576 mtu 3 GID 3 (0/1064A8C0FFFF0000) fifoRkey=0x1b9e9c fifoLkey=0x1b9e9c";
        let pair = queue_pair(text).unwrap();
        assert_eq!(
            (pair.network_device, pair.adapter, pair.port, pair.number),
            (0, 0, 1, 576)
        );
        // c0 a8 64 10.
        assert_eq!(pair.address, Some(Address::v4([192, 168, 100, 16])));
        assert_eq!(pair.gid_index, Some(3));
        // 2.21: the extended connection is in the same line. ac 1e 00 19.
        let text = "NET/IB: NCCL Dev 4 IbDev 2 Port 1 qpn 34 mtu 3 query_ece={supported=0, vendor_id=0x0, options=0x0, comp_mask=0x0} GID 1 (0/19001EACFFFF0000) fifoRkey=0x4fd5 fifoLkey=0x4fd5";
        let pair = queue_pair(text).unwrap();
        assert_eq!((pair.network_device, pair.adapter, pair.number), (4, 2, 34));
        assert_eq!(pair.address, Some(Address::v4([172, 30, 0, 25])));
        // 2.8 to 2.18, over InfiniBand, and over RoCE with a link-local GID.
        let pair = queue_pair("NET/IB: Dev 1 Port 1 qpn 3038 mtu 5 LID 37").unwrap();
        assert_eq!(
            (pair.adapter, pair.number, pair.address),
            (1, 3038, Some(Address::lid(37)))
        );
        let pair = queue_pair("NET/IB: Dev 0 Port 1 qpn 279 mtu 5 GID 1 (80FE/46442FFEFF47BB4E)").unwrap();
        assert_eq!(pair.address.unwrap().to_string(), "fe80::4ebb:47ff:fe2f:4446");
        for other in [
            "NET/IB: IbDev 0 Port 1 qpn 576 query_ece={supported=1, vendor_id=0x15b3, options=0x30000002, comp_mask=0x0}",
            "NET/IB: IbDev 0 Port 1 qpn 35 set_ece={supported=0, vendor_id=0x76ce, options=0x0, comp_mask=0x0}",
            "NET/IB: Dev 0 Port 1 qpn x mtu 5 LID 1",
            " qpn 1 mtu 2",
        ] {
            assert_eq!(queue_pair(other), None, "{other}");
        }
    }

    #[test]
    fn connections_that_send() {
        let found = send("Channel 02/0 : 3[3] -> 11[3] [send] via NET/IB/0/GDRDMA").unwrap();
        let expected = Send {
            channel: 2,
            from: 3,
            to: 11,
            network_device: 0,
        };
        assert_eq!(found, (expected, None));
        // 2.8 has the GPU's address, and no second number of the channel; a plugin has another name.
        let old = send("Channel 02 : 3[b1000] -> 11[b1000] [send] via NET/IBext_v8/0").unwrap();
        assert_eq!(old, (expected, None));
        // PXN: rank 1 sends over the adapter of rank 3.
        let (found, by) = send("Channel 00/0 : 1[1] -> 8[0] [send] via NET/IB/2(3)/GDRDMA/Shared").unwrap();
        assert_eq!((found.network_device, by), (2, Some(3)));
        for other in [
            "Channel 02/0 : 3[3] -> 11[3] [receive] via NET/IB/0",
            "Channel 02/0 : 3[3] -> 4[4] via P2P/CUMEM",
            "Channel 02/0 : 3[3] -> 11[3] [send] via NET/Socket/0",
            "Channel 02/0 : 3[3] -> 11[3] [send] via NET/IB",
        ] {
            assert_eq!(send(other), None, "{other}");
        }
    }

    fn joined(
        sends: &[(u32, u32, u32)],
        pairs: &[(u32, u32)],
        per_connection: usize,
    ) -> Vec<(Option<u32>, Option<u32>)> {
        let mut batch = Batch::default();
        for (channel, to, network_device) in sends {
            batch.send(Send {
                channel: *channel,
                from: 3,
                to: *to,
                network_device: *network_device,
            });
        }
        let mut all = Vec::new();
        for (place, (network_device, adapter)) in pairs.iter().enumerate() {
            all.push(QueuePair {
                network_device: *network_device,
                adapter: *adapter,
                ..QueuePair::default()
            });
            batch.pair(place);
        }
        batch.join(&mut all, per_connection);
        all.iter().map(|pair| (pair.peer_rank, pair.channel)).collect()
    }

    #[test]
    fn queue_pairs_come_in_the_order_of_connections() {
        let known = |to, channel| (Some(to), Some(channel));
        // Two channels on two devices, whose lines are mixed.
        assert_eq!(
            joined(&[(0, 11, 0), (1, 12, 1)], &[(1, 1), (0, 0)], 1),
            [known(12, 1), known(11, 0)]
        );
        // Two queue pairs for each connection.
        assert_eq!(
            joined(&[(0, 11, 0), (1, 12, 0)], &[(0, 0); 4], 2),
            [known(11, 0), known(11, 0), known(12, 1), known(12, 1)]
        );
        // A network device of two adapters.
        assert_eq!(
            joined(&[(0, 11, 0)], &[(0, 0), (0, 1)], 1),
            [known(11, 0), known(11, 0)]
        );
        // A line is missing: only the peer is sure, where it is the only one.
        assert_eq!(
            joined(&[(0, 11, 0), (1, 11, 0)], &[(0, 0)], 1),
            [(Some(11), None)]
        );
        assert_eq!(joined(&[(0, 11, 0), (1, 12, 0)], &[(0, 0)], 1), [(None, None)]);
        assert_eq!(
            joined(&[(0, 11, 1)], &[(0, 0)], 1),
            [(None, None)],
            "of another device"
        );
    }
}
