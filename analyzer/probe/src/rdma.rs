//! Counters that the RDMA subsystem gives by netlink alone, as `rdma statistic` reads them: optional counters of ports, and counters
//! of queue pairs. The messages are those of Linux include/uapi/rdma/rdma_netlink.h. Nothing is switched on. Needs no rights.
//!
//! A crate was looked for and not taken: no netlink crate has messages of RDMA, so that one would only save the header of 16 bytes.

use std::io;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::net::netlink::RDMA;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use crate::netlink::{DONE, DUMP, ERROR, HEADER, attribute, attributes, header, u16_at, u32_at};

/// `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)`: the client 5 in the upper six bits.
const NLDEV: u16 = 5 << 10;
/// RDMA_NLDEV_CMD_GET.
const GET: u16 = NLDEV + 1;
/// RDMA_NLDEV_CMD_STAT_GET.
const STAT_GET: u16 = NLDEV + 17;
/// RDMA_NLDEV_CMD_STAT_GET_STATUS (Linux 5.16).
const STAT_GET_STATUS: u16 = NLDEV + 24;

// RDMA_NLDEV_ATTR_...
const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const RES_QP: u16 = 19;
const RES_QP_ENTRY: u16 = 20;
const RES_LQPN: u16 = 21;
const STAT_RES: u16 = 75;
const STAT_COUNTER: u16 = 77;
const STAT_COUNTER_ENTRY: u16 = 78;
const STAT_COUNTER_ID: u16 = 79;
const HW_COUNTERS: u16 = 80;
const HW_COUNTER_ENTRY: u16 = 81;
const HW_COUNTER_NAME: u16 = 82;
const HW_COUNTER_VALUE: u16 = 83;
const HW_COUNTER_DYNAMIC: u16 = 95;

/// The kernel answers at once; longer means that it does not answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Devices, counters of one answer and messages of one dump at most.
const MAX_DEVICES: usize = 1 << 10;
const MAX_COUNTERS: usize = 1 << 16;
const MAX_MESSAGES: usize = 1 << 12;

/// A device by its number in the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) name: String,
}

/// A counter that can be switched on and off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Optional {
    pub(crate) name: String,
    pub(crate) is_on: bool,
}

/// A counter's name and value.
pub(crate) type Value = (String, u64);

/// The counters of one or more queue pairs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct QueuePairCounters {
    pub(crate) port: u32,
    /// Number of the set of counters.
    pub(crate) id: u32,
    /// Queue pairs that are bound to it.
    pub(crate) queue_pairs: Vec<u32>,
    pub(crate) values: Vec<Value>,
}

/// A socket for questions about RDMA devices.
pub(crate) struct Rdma {
    socket: OwnedFd,
    sequence: u32,
}

impl Rdma {
    /// Opens the socket: a process that gives up its rights can open none later.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(RDMA),
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// All RDMA devices.
    pub(crate) fn devices(&mut self) -> io::Result<Vec<Device>> {
        let mut devices = Vec::new();
        self.ask(GET, &[], true, |message| devices.extend(device_in(message)))?;
        devices.truncate(MAX_DEVICES);
        Ok(devices)
    }

    /// The counters of a port that can be switched on and off.
    pub(crate) fn optional(&mut self, device: u32, port: u32) -> io::Result<Vec<Optional>> {
        let mut found = Vec::new();
        let attributes = [(DEV_INDEX, device), (PORT_INDEX, port)];
        self.ask(STAT_GET_STATUS, &attributes, false, |message| {
            found = optional_in(message);
        })?;
        Ok(found)
    }

    /// All counters of a port that are on.
    pub(crate) fn counters(&mut self, device: u32, port: u32) -> io::Result<Vec<Value>> {
        let mut found = Vec::new();
        let attributes = [(DEV_INDEX, device), (PORT_INDEX, port)];
        self.ask(STAT_GET, &attributes, false, |message| {
            found = counters_in(message);
        })?;
        Ok(found)
    }

    /// Counters of queue pairs of a device.
    pub(crate) fn queue_pairs(&mut self, device: u32) -> io::Result<Vec<QueuePairCounters>> {
        let mut found = Vec::new();
        let attributes = [(DEV_INDEX, device), (STAT_RES, u32::from(RES_QP))];
        self.ask(STAT_GET, &attributes, true, |message| {
            found.extend(queue_pairs_in(message));
        })?;
        Ok(found)
    }

    /// Asks, and gives the attributes of each message of the answer.
    fn ask(
        &mut self,
        kind: u16,
        attributes: &[(u16, u32)],
        dumps: bool,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        send(
            &self.socket,
            &request(kind, attributes, dumps, self.sequence),
            SendFlags::empty(),
        )?;
        let mut room = vec![0; 1 << 18];
        for _ in 0..MAX_MESSAGES {
            let (length, _) = recv(&self.socket, &mut room[..], RecvFlags::empty())?;
            match answers(&room[..length], self.sequence, kind, &mut take) {
                Answer::Failed(error) => return Err(io::Error::from_raw_os_error(error)),
                Answer::Ended => return Ok(()),
                Answer::Taken if !dumps => return Ok(()),
                Answer::Taken | Answer::Nothing => {}
            }
        }
        Ok(())
    }
}

/// Result of the messages of one datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// The kernel refuses, with this errno.
    Failed(i32),
    /// A dump has ended.
    Ended,
    /// An answer was taken, and more may follow.
    Taken,
    /// Answers of earlier questions.
    Nothing,
}

/// A request with attributes of 32 bits.
fn request(kind: u16, attributes: &[(u16, u32)], dumps: bool, sequence: u32) -> Vec<u8> {
    let flags = if dumps { DUMP } else { 0 };
    let mut bytes = header(kind, flags, sequence, 8 * attributes.len());
    for (attribute, value) in attributes {
        bytes.extend(8_u16.to_ne_bytes());
        bytes.extend(attribute.to_ne_bytes());
        bytes.extend(value.to_ne_bytes());
    }
    bytes
}

/// Takes the messages of a datagram that answer question number `sequence`.
fn answers(mut bytes: &[u8], sequence: u32, kind: u16, take: &mut impl FnMut(&[u8])) -> Answer {
    let mut answer = Answer::Nothing;
    while let (Some(length), Some(found)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = length as usize;
        let Some(message) = bytes.get(..length).filter(|_| length >= HEADER) else {
            break;
        };
        if u32_at(message, 8) == Some(sequence) {
            match found {
                ERROR => {
                    let error = u32_at(message, HEADER).map_or(0, u32::cast_signed);
                    // 0 is an acknowledgement.
                    return if error == 0 {
                        Answer::Ended
                    } else {
                        Answer::Failed(-error)
                    };
                }
                DONE => return Answer::Ended,
                found if found == kind => {
                    take(&message[HEADER..]);
                    answer = Answer::Taken;
                }
                _ => {}
            }
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    answer
}

/// The device of an answer.
fn device_in(message: &[u8]) -> Option<Device> {
    Some(Device {
        index: number(attribute(message, DEV_INDEX)?)?,
        name: text(attribute(message, DEV_NAME)?)?,
    })
}

/// The counters of an answer that can be switched on and off: those with a state.
fn optional_in(message: &[u8]) -> Vec<Optional> {
    let entries = attributes(attribute(message, HW_COUNTERS).unwrap_or_default());
    let found = entries.filter(|(kind, _)| *kind == HW_COUNTER_ENTRY);
    let found = found.filter_map(|(_, entry)| {
        Some(Optional {
            name: text(attribute(entry, HW_COUNTER_NAME)?)?,
            is_on: *attribute(entry, HW_COUNTER_DYNAMIC)?.first()? != 0,
        })
    });
    found.take(MAX_COUNTERS).collect()
}

/// The counters of an answer.
fn counters_in(message: &[u8]) -> Vec<Value> {
    let entries = attributes(attribute(message, HW_COUNTERS).unwrap_or_default());
    let found = entries.filter(|(kind, _)| *kind == HW_COUNTER_ENTRY);
    let found = found.filter_map(|(_, entry)| {
        let value = attribute(entry, HW_COUNTER_VALUE)?;
        Some((
            text(attribute(entry, HW_COUNTER_NAME)?)?,
            u64::from_ne_bytes(value.get(..8)?.try_into().ok()?),
        ))
    });
    found.take(MAX_COUNTERS).collect()
}

/// The counters of queue pairs of an answer.
fn queue_pairs_in(message: &[u8]) -> Vec<QueuePairCounters> {
    let entries = attributes(attribute(message, STAT_COUNTER).unwrap_or_default());
    let found = entries.filter(|(kind, _)| *kind == STAT_COUNTER_ENTRY);
    let found = found.filter_map(|(_, entry)| {
        let bound = attributes(attribute(entry, RES_QP).unwrap_or_default());
        let bound = bound.filter(|(kind, _)| *kind == RES_QP_ENTRY);
        Some(QueuePairCounters {
            port: number(attribute(entry, PORT_INDEX)?)?,
            id: number(attribute(entry, STAT_COUNTER_ID)?)?,
            queue_pairs: bound
                .filter_map(|(_, entry)| number(attribute(entry, RES_LQPN)?))
                .take(MAX_COUNTERS)
                .collect(),
            values: counters_in(entry),
        })
    });
    found.take(MAX_COUNTERS).collect()
}

fn number(body: &[u8]) -> Option<u32> {
    u32_at(body, 0)
}

/// A text up to its byte of zero.
fn text(body: &[u8]) -> Option<String> {
    let end = body.iter().position(|byte| *byte == 0).unwrap_or(body.len());
    let text = std::str::from_utf8(body.get(..end)?).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute_of;

    fn nest(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
        attribute_of(kind | 0x8000, &parts.concat())
    }

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(u32::try_from(HEADER + body.len()).unwrap().to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([2, 0]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes
    }

    fn counter(name: &str, value: u64) -> Vec<u8> {
        nest(
            HW_COUNTER_ENTRY,
            &[
                attribute_of(HW_COUNTER_NAME, format!("{name}\0").as_bytes()),
                attribute_of(HW_COUNTER_VALUE, &value.to_ne_bytes()),
            ],
        )
    }

    fn port() -> Vec<u8> {
        [
            attribute_of(DEV_INDEX, &2_u32.to_ne_bytes()),
            attribute_of(DEV_NAME, b"mlx5_0\0"),
            attribute_of(PORT_INDEX, &1_u32.to_ne_bytes()),
        ]
        .concat()
    }

    /// As the kernel's stat_get_doit_default_counter makes it: device, port, and a nest of counters.
    fn statistics() -> Vec<u8> {
        let counters = [
            counter("out_of_sequence", 1_187),
            counter("cc_rx_ce_pkts", 40_394_100),
        ];
        [port(), nest(HW_COUNTERS, &counters)].concat()
    }

    /// As the kernel's nldev_stat_get_counter_status_doit makes it: optional counters have a state.
    fn status() -> Vec<u8> {
        let entry = |name: &[u8], state: Option<u8>| {
            let mut parts = vec![
                attribute_of(HW_COUNTER_NAME, name),
                attribute_of(94, &0_u32.to_ne_bytes()),
            ];
            parts.extend(state.map(|state| attribute_of(HW_COUNTER_DYNAMIC, &[state])));
            nest(HW_COUNTER_ENTRY, &parts)
        };
        let entries = [
            entry(b"out_of_sequence\0", None),
            entry(b"cc_rx_ce_pkts\0", Some(1)),
            entry(b"cc_tx_cnp_pkts\0", Some(0)),
        ];
        [port(), nest(HW_COUNTERS, &entries)].concat()
    }

    /// As the kernel's fill_res_counter_entry makes it: a set of counters with the queue pairs that are bound to it.
    fn counter_with_queue_pairs() -> Vec<u8> {
        let bound =
            [0x11_u32, 0x12].map(|qpn| nest(RES_QP_ENTRY, &[attribute_of(RES_LQPN, &qpn.to_ne_bytes())]));
        let entry = nest(
            STAT_COUNTER_ENTRY,
            &[
                attribute_of(PORT_INDEX, &1_u32.to_ne_bytes()),
                attribute_of(STAT_COUNTER_ID, &4_u32.to_ne_bytes()),
                nest(RES_QP, &bound),
                nest(HW_COUNTERS, &[counter("out_of_sequence", 7)]),
            ],
        );
        [port(), nest(STAT_COUNTER, &[entry])].concat()
    }

    #[test]
    fn requests_are_as_the_kernel_reads_them() {
        // On a little-endian machine: length 32, type 0x1411 (5 << 10 | 17), NLM_F_REQUEST, sequence 7; device 2, port 1.
        let bytes = request(STAT_GET, &[(DEV_INDEX, 2), (PORT_INDEX, 1)], false, 7);
        if cfg!(target_endian = "little") {
            assert_eq!(
                bytes,
                [
                    32, 0, 0, 0, 0x11, 0x14, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, // header
                    8, 0, 1, 0, 2, 0, 0, 0, 8, 0, 3, 0, 1, 0, 0, 0,
                ]
            );
            assert_eq!(request(GET, &[], true, 1)[4..8], [0x01, 0x14, 0x01, 0x03]);
        }
    }

    #[test]
    fn counters_of_a_port() {
        let expected = [
            ("out_of_sequence".to_owned(), 1_187),
            ("cc_rx_ce_pkts".to_owned(), 40_394_100),
        ];
        assert_eq!(counters_in(&statistics()), expected);
        assert_eq!(
            device_in(&statistics()),
            Some(Device {
                index: 2,
                name: "mlx5_0".into()
            })
        );
    }

    #[test]
    fn optional_counters_are_those_with_a_state() {
        let found = optional_in(&status());
        let found: Vec<(&str, bool)> = found.iter().map(|one| (one.name.as_str(), one.is_on)).collect();
        assert_eq!(found, [("cc_rx_ce_pkts", true), ("cc_tx_cnp_pkts", false)]);
    }

    #[test]
    fn counters_counter_with_queue_pairs() {
        let expected = QueuePairCounters {
            port: 1,
            id: 4,
            queue_pairs: vec![0x11, 0x12],
            values: vec![("out_of_sequence".to_owned(), 7)],
        };
        assert_eq!(queue_pairs_in(&counter_with_queue_pairs()), [expected]);
    }

    #[test]
    fn answers_of_other_questions_are_passed_over() {
        let mut taken = 0;
        let mut ask = |bytes: &[u8]| answers(bytes, 7, STAT_GET, &mut |_: &[u8]| taken += 1);
        assert_eq!(ask(&message(STAT_GET, 6, &statistics())), Answer::Nothing);
        let both = [message(STAT_GET, 7, &statistics()), message(DONE, 7, &[0; 4])].concat();
        assert_eq!(ask(&both), Answer::Ended);
        // -ENODEV.
        assert_eq!(
            ask(&message(ERROR, 7, &(-19_i32).to_ne_bytes())),
            Answer::Failed(19)
        );
        assert_eq!(ask(&message(STAT_GET, 7, &[])), Answer::Taken);
        assert_eq!(taken, 2);
    }

    #[test]
    fn cut_and_endless_answers_do_no_harm() {
        for whole in [statistics(), status(), counter_with_queue_pairs()] {
            for end in 0..whole.len() {
                let part = &whole[..end];
                assert!(counters_in(part).len() <= 2);
                assert!(optional_in(part).len() <= 2);
                assert!(queue_pairs_in(part).len() <= 1);
            }
            // Lengths of 0 and of more than there is.
            for at in (0..whole.len()).step_by(4) {
                for length in [[0, 0], [0xff, 0xff], [3, 0]] {
                    let mut broken = whole.clone();
                    broken[at..at + 2].copy_from_slice(&length);
                    let _ = (
                        counters_in(&broken),
                        optional_in(&broken),
                        queue_pairs_in(&broken),
                    );
                    let message = message(STAT_GET, 7, &broken);
                    let _ = answers(&message[..at], 7, STAT_GET, &mut |_: &[u8]| ());
                }
            }
        }
    }

    /// Kernels with the RDMA subsystem answer with a list, which is empty without devices; others refuse the socket.
    #[test]
    fn this_host_is_asked() {
        match Rdma::open() {
            Ok(mut rdma) => {
                let devices = rdma.devices().unwrap_or_default();
                let shown = std::path::Path::new("/sys/class/infiniband");
                assert!(devices.iter().all(|device| shown.join(&device.name).exists()));
            }
            Err(error) => assert_eq!(
                error.raw_os_error(),
                Some(rustix::io::Errno::PROTONOSUPPORT.raw_os_error())
            ),
        }
    }
}
