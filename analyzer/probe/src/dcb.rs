//! PFC of an interface by data centre bridging over netlink: which priorities it is enabled on, and frames by priority, whatever the
//! driver calls them. The messages are those of Linux include/uapi/linux/dcbnl.h. Needs no rights.
//!
//! netlink-packet-route (0.25) has no messages of DCB, so that a netlink crate would only save the header of 16 bytes.

use std::io;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use serde_json::{Value, json};

use crate::netlink::{ERROR, REQUEST, attribute, attributes, u16_at, u32_at};

/// RTM_GETDCB.
const GET_DCB: u16 = 78;
/// DCB_CMD_IEEE_GET.
const IEEE_GET: u8 = 21;
/// DCB_ATTR_IFNAME.
const INTERFACE: u16 = 1;
/// DCB_ATTR_IEEE.
const IEEE: u16 = 13;
/// DCB_ATTR_IEEE_PFC.
const IEEE_PFC: u16 = 2;
/// DCB_ATTR_IEEE_APP_TABLE; in it DCB_ATTR_IEEE_APP.
const IEEE_APPS: u16 = 3;
const IEEE_APP: u16 = 1;
/// DCB_ATTR_IEEE_PEER_PFC.
const IEEE_PEER_PFC: u16 = 5;
/// DCB_ATTR_IEEE_MAXRATE.
const IEEE_MAXRATE: u16 = 7;
/// DCB_ATTR_DCB_BUFFER.
const BUFFER: u16 = 10;
/// DCB_ATTR_DCB_APP_TRUST_TABLE.
const APP_TRUST: u16 = 11;
/// DCB_ATTR_DCBX.
const DCBX: u16 = 14;
/// IEEE_8021QAZ_APP_SEL_DSCP.
const DSCP: u8 = 5;
/// DCB_CAP_DCBX_LLD_MANAGED: firmware decides.
const LLD_MANAGED: u8 = 2;
/// Headers before the attributes: `struct nlmsghdr`, `struct dcbmsg`.
const HEADERS: usize = 16 + 4;
/// IFNAMSIZ.
const MAX_NAME: usize = 16;
/// The kernel answers at once; longer means that it does not answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// PFC of one interface: `struct ieee_pfc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pfc {
    /// A bit for each priority that PFC is enabled on.
    pub(crate) enabled: u8,
    /// PFC frames sent, by priority.
    pub(crate) sent: [u64; 8],
    /// PFC frames received, by priority.
    pub(crate) received: [u64; 8],
}

/// PFC of an interface, and the priorities of DSCPs.
pub(crate) type DcbReading = (Option<Pfc>, Vec<(u16, u8)>);

/// A socket for questions about DCB.
pub(crate) struct Dcb {
    socket: OwnedFd,
    sequence: u32,
}

impl Dcb {
    /// Opens the socket: a process that gives up its rights can open none later.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // Protocol 0: NETLINK_ROUTE.
            None,
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// PFC of an interface, `None` where its driver has no DCB, and the priorities of DSCPs, where some were set.
    pub(crate) fn reading(&mut self, interface: &str) -> io::Result<DcbReading> {
        let answer = self.answer(interface)?;
        Ok((pfc_in(&answer), dscps_in(&answer).unwrap_or_default()))
    }

    /// Settings of an interface: questions with their answers as JSON, in the form of `dcb -j` where it has one.
    pub(crate) fn settings(&mut self, interface: &str) -> io::Result<Vec<(&'static str, Value)>> {
        let answer = self.answer(interface)?;
        if u16_at(&answer, 4) == Some(ERROR) {
            // struct nlmsgerr: the negated errno.
            let errno = u32_at(&answer, 16).map_or(0, |errno| errno.wrapping_neg().cast_signed());
            return Err(io::Error::from_raw_os_error(errno));
        }
        Ok(settings_in(&answer))
    }

    /// The answer of the kernel, or its error message.
    fn answer(&mut self, interface: &str) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(interface, self.sequence).ok_or(io::ErrorKind::InvalidInput)?;
        send(&self.socket, &request, SendFlags::empty())?;
        let mut room = vec![0; 1 << 16];
        loop {
            let (length, _) = recv(&self.socket, &mut room[..], RecvFlags::empty())?;
            let answer = &room[..length];
            // A late answer to an earlier question.
            if u32_at(answer, 8) != Some(self.sequence) {
                continue;
            }
            return Ok(answer.to_vec());
        }
    }
}

/// The request for all IEEE attributes of an interface; `None` when its name is too long for one.
fn request(interface: &str, sequence: u32) -> Option<Vec<u8>> {
    if interface.len() >= MAX_NAME {
        return None;
    }
    let name_bytes = 4 + interface.len() + 1;
    let length = HEADERS + name_bytes.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).ok()?.to_ne_bytes());
    bytes.extend(GET_DCB.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    // struct dcbmsg: family (unspecified), command, padding.
    bytes.extend([0, IEEE_GET, 0, 0]);
    bytes.extend(u16::try_from(name_bytes).ok()?.to_ne_bytes());
    bytes.extend(INTERFACE.to_ne_bytes());
    bytes.extend(interface.as_bytes());
    bytes.resize(length, 0);
    Some(bytes)
}

/// PFC in an answer; `None` for errors, and for answers without it.
fn pfc_in(answer: &[u8]) -> Option<Pfc> {
    if u16_at(answer, 4)? == ERROR {
        return None;
    }
    let length = (u32_at(answer, 0)? as usize).min(answer.len());
    let ieee = attribute(answer.get(HEADERS..length)?, IEEE)?;
    let pfc = attribute(ieee, IEEE_PFC)?;
    // u8 pfc_cap, pfc_en, mbc; u16 delay; then, each of 8 bytes and aligned to 8, requests[8] and indications[8].
    let numbers = |from: usize| -> Option<[u64; 8]> {
        let mut all = [0; 8];
        for (index, number) in all.iter_mut().enumerate() {
            let at = from + index * 8;
            *number = u64::from_ne_bytes(pfc.get(at..at + 8)?.try_into().ok()?);
        }
        Some(all)
    };
    Some(Pfc {
        enabled: *pfc.get(1)?,
        sent: numbers(8)?,
        received: numbers(8 + 64)?,
    })
}

/// DSCPs with their priorities, by the table of applications in an answer; `None` where there is no table.
fn dscps_in(answer: &[u8]) -> Option<Vec<(u16, u8)>> {
    if u16_at(answer, 4)? == ERROR {
        return None;
    }
    let length = (u32_at(answer, 0)? as usize).min(answer.len());
    dscps_of(attribute(answer.get(HEADERS..length)?, IEEE)?)
}

/// DSCPs with their priorities, by the IEEE attributes of an interface.
fn dscps_of(ieee: &[u8]) -> Option<Vec<(u16, u8)>> {
    let table = attributes(attribute(ieee, IEEE_APPS)?);
    let of_dscp = table
        .filter(|(kind, _)| *kind == IEEE_APP)
        .filter_map(|(_, entry)| {
            // struct dcb_app: selector, priority, protocol of 16 bits.
            match *entry {
                [DSCP, priority, ..] => Some((u16_at(entry, 2)?, priority)),
                _ => None,
            }
        });
    Some(of_dscp.collect())
}

/// All settings in an answer. Those that the driver does not have are errors in words.
fn settings_in(answer: &[u8]) -> Vec<(&'static str, Value)> {
    let absent = || json!({ "error": "the driver does not say it" });
    let length = u32_at(answer, 0).map_or(0, |length| (length as usize).min(answer.len()));
    let Some(message) = answer.get(HEADERS..length) else {
        return Vec::new();
    };
    let ieee = attribute(message, IEEE).unwrap_or_default();
    let pfc = |kind| {
        let enabled = *attribute(ieee, kind)?.get(1)?;
        let all: Vec<bool> = (0..8).map(|priority| enabled >> priority & 1 == 1).collect();
        Some(json!({ "prio_pfc": all }))
    };
    let app = || {
        let map = dscps_of(ieee)?;
        Some(json!({ "dscp_prio": map }))
    };
    let buffer = || {
        // struct dcbnl_buffer: prio2buffer[8], buffer_size[8] of 32 bits, total_size.
        let bytes = attribute(ieee, BUFFER)?;
        let sizes: Option<Vec<u32>> = (0..8).map(|place| u32_at(bytes, 8 + place * 4)).collect();
        Some(
            json!({ "prio_buffer": bytes.get(..8)?, "buffer_size": sizes?, "total_size": u32_at(bytes, 40)? }),
        )
    };
    let maxrate = || {
        let bytes = attribute(ieee, IEEE_MAXRATE)?;
        let rates = bytes.chunks_exact(8).take(8);
        let rates: Vec<u64> = rates
            .filter_map(|rate| Some(u64::from_ne_bytes(rate.try_into().ok()?)))
            .collect();
        Some(json!({ "tc_maxrate_kbit": rates }))
    };
    let trust = || {
        let table = attributes(attribute(ieee, APP_TRUST)?);
        let order = table.filter_map(|(_, entry)| {
            Some(match entry.first()? {
                5 => "dscp",
                255 => "pcp",
                _ => "other",
            })
        });
        Some(json!({ "apptrust": order.collect::<Vec<_>>() }))
    };
    let dcbx = || {
        let mode = *attribute(message, DCBX)?.first()?;
        Some(json!({ "lld_managed": mode & LLD_MANAGED != 0, "mode": mode }))
    };
    vec![
        ("dcb-pfc", pfc(IEEE_PFC).unwrap_or_else(absent)),
        ("dcb-peer-pfc", pfc(IEEE_PEER_PFC).unwrap_or_else(absent)),
        ("dcb-app", app().unwrap_or_else(absent)),
        ("dcb-buffer", buffer().unwrap_or_else(absent)),
        ("dcb-maxrate", maxrate().unwrap_or_else(absent)),
        ("dcb-apptrust", trust().unwrap_or_else(absent)),
        ("dcb-dcbx", dcbx().unwrap_or_else(absent)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute_of;

    /// An answer as the kernel's dcb_ieee_fill makes it: the interface's name, then ETS and PFC in a nest.
    fn answer(pfc: &[u8]) -> Vec<u8> {
        let nest = [attribute_of(1, &[0; 5]), attribute_of(IEEE_PFC, pfc)].concat();
        let attributes = [
            attribute_of(INTERFACE, b"eth0\0"),
            attribute_of(IEEE | 0x8000, &nest),
        ]
        .concat();
        let mut bytes = Vec::new();
        bytes.extend(u32::try_from(HEADERS + attributes.len()).unwrap().to_ne_bytes());
        bytes.extend([78, 0, 0, 0]);
        bytes.extend(7_u32.to_ne_bytes());
        bytes.resize(HEADERS, 0);
        bytes.extend(attributes);
        bytes
    }

    /// `struct ieee_pfc` with PFC on priority 3; 118 frames sent and 41,210 received there.
    fn ieee_pfc() -> Vec<u8> {
        let mut bytes = vec![8, 1 << 3, 0, 0, 0, 0, 0, 0];
        for counts in [118_u64, 41_210] {
            for priority in 0..8 {
                bytes.extend((if priority == 3 { counts } else { 0 }).to_ne_bytes());
            }
        }
        bytes
    }

    #[test]
    fn pfc_of_an_answer() {
        let pfc = pfc_in(&answer(&ieee_pfc())).unwrap();
        assert_eq!(pfc.enabled, 0b1000);
        assert_eq!((pfc.sent[3], pfc.received[3]), (118, 41_210));
        assert_eq!(
            (pfc.sent.iter().sum::<u64>(), pfc.received.iter().sum::<u64>()),
            (118, 41_210)
        );
    }

    #[test]
    fn settings_of_an_answer() {
        // struct dcb_app: DSCP 26 to priority 3, an Ethertype, DSCP 48 to 6.
        let app = |selector: u8, priority: u8, protocol: u16| {
            let [low, high] = protocol.to_ne_bytes();
            attribute_of(IEEE_APP, &[selector, priority, low, high])
        };
        let apps = [app(5, 3, 26), app(1, 3, 0x8906), app(5, 6, 48)].concat();
        let mut buffer = vec![0, 0, 0, 1, 0, 0, 0, 0];
        for size in [130_944_u32, 130_944, 0, 0, 0, 0, 0, 0, 261_888] {
            buffer.extend(size.to_ne_bytes());
        }
        let rates: Vec<u8> = (0..8_u64)
            .flat_map(|class| (class * 1_000_000).to_ne_bytes())
            .collect();
        let nest = [
            attribute_of(IEEE_PFC, &ieee_pfc()),
            attribute_of(IEEE_APPS, &apps),
            attribute_of(IEEE_MAXRATE, &rates),
            attribute_of(BUFFER, &buffer),
            attribute_of(
                APP_TRUST,
                &[attribute_of(1, &[5]), attribute_of(2, &[255])].concat(),
            ),
        ]
        .concat();
        let attributes = [
            attribute_of(INTERFACE, b"eth0\0"),
            attribute_of(IEEE, &nest),
            attribute_of(DCBX, &[0x0a]),
        ]
        .concat();
        let mut answer = Vec::new();
        answer.extend(u32::try_from(HEADERS + attributes.len()).unwrap().to_ne_bytes());
        answer.resize(HEADERS, 0);
        answer.extend(attributes);
        let settings: std::collections::BTreeMap<_, _> = settings_in(&answer).into_iter().collect();
        assert_eq!(settings["dcb-pfc"]["prio_pfc"][3], true);
        assert_eq!(settings["dcb-app"]["dscp_prio"], json!([[26, 3], [48, 6]]));
        assert_eq!(dscps_in(&answer), Some(vec![(26, 3), (48, 6)]));
        assert_eq!(settings["dcb-buffer"]["prio_buffer"][3], 1);
        assert_eq!(settings["dcb-buffer"]["total_size"], 261_888);
        assert_eq!(settings["dcb-maxrate"]["tc_maxrate_kbit"][7], 7_000_000);
        assert_eq!(settings["dcb-apptrust"]["apptrust"], json!(["dscp", "pcp"]));
        // DCB_CAP_DCBX_VER_IEEE is 8, DCB_CAP_DCBX_LLD_MANAGED 2.
        assert_eq!(settings["dcb-dcbx"]["lld_managed"], true);
        assert!(settings["dcb-peer-pfc"]["error"].is_string());
        for length in 0..answer.len() {
            let _ = settings_in(&answer[..length]);
        }
    }

    #[test]
    fn cut_answers_and_errors_say_nothing() {
        let whole = answer(&ieee_pfc());
        for length in 0..whole.len() {
            assert_eq!(pfc_in(&whole[..length]), None, "{length} bytes");
        }
        let mut error = whole.clone();
        error[4] = 2;
        assert_eq!(pfc_in(&error), None);
        // An attribute of length 0 must not be looked at for ever.
        let mut endless = whole;
        endless[HEADERS] = 0;
        assert_eq!(pfc_in(&endless), None);
    }

    #[test]
    fn interfaces_without_dcb_have_none() {
        let mut dcb = Dcb::open().unwrap();
        assert_eq!(dcb.reading("lo").unwrap(), (None, Vec::new()));
        assert_eq!(dcb.reading("nosuchinterface").unwrap(), (None, Vec::new()));
        assert!(dcb.settings("lo").is_err());
        assert!(dcb.reading("a name that is far too long").is_err());
    }
}
