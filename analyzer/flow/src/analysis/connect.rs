//! The connection manager's messages: which queue pairs it connects, and that their PSNs start again.

use roce_model::{AttemptResult, EventKind, EventRow, FlowKey, Management, Packet, RejectReason};
use roce_wire::{Psn, Qpn, Service};

use crate::analysis::Analysis;
use crate::pairing::cm_exchanges::{ExchangeKey, Step};
use crate::pairing::evidence::PairingEvidence;
use crate::pairing::known_peers::{Direction, KnownPeer};
use crate::psn::request::NewConnection;

/// The services that have connections.
const CONNECTED: [Service; 3] = [Service::Rc, Service::Uc, Service::Xrc];

/// The key of the flow opposite to `packet`'s direction, for the queue pair `qpn`.
fn back(packet: &Packet, qpn: Qpn) -> FlowKey {
    FlowKey {
        source: packet.roce.destination,
        destination: packet.roce.source,
        destination_qpn: qpn,
        source_qpn: Qpn::default(),
        ..FlowKey::from_packet(&packet.roce)
    }
}

/// The key of the flow in `packet`'s direction, for the queue pair `qpn`.
fn forth(packet: &Packet, qpn: Qpn) -> FlowKey {
    FlowKey {
        destination_qpn: qpn,
        source_qpn: Qpn::default(),
        ..FlowKey::from_packet(&packet.roce)
    }
}

impl Analysis {
    /// A message of the connection manager.
    pub(super) fn management(&mut self, packet: &Packet, message: &Management) {
        self.advance_to(packet.time);
        self.bins.events.push(EventRow {
            time: packet.time,
            kind: EventKind::Connection,
            tap: packet.tap,
            flow_id: Some(FlowKey::from_packet(&packet.roce).id()),
            psn: message.starting_psn.map(Psn::value),
            value: message.local_qpn.map(|qpn| u64::from(qpn.value())),
            detail: Some(message.name.into()),
            ..EventRow::default()
        });
        let (tap, roce) = (packet.tap, &packet.roce);
        // The exchange goes by the id of who sent the REQ.
        let mine = message
            .local_id
            .map(|id| (tap, roce.source, roce.destination, id));
        let theirs = message
            .remote_id
            .map(|id| (tap, roce.destination, roce.source, id));
        self.note_attempt(packet, message, mine, theirs);
        let end = message.local_qpn.map(|qpn| (qpn, message.starting_psn));
        match (message.name, end) {
            ("REQ", Some(end)) => {
                let step = mine.map_or(Step::New(None), |key| {
                    self.connections.exchanges.request(key, end)
                });
                if step != Step::Repeated {
                    self.connect(packet, end);
                }
            }
            ("REP", Some(end)) => {
                let step = theirs.map_or(Step::New(None), |key| self.connections.exchanges.reply(&key, end));
                if let Step::New(other) = step {
                    self.connect(packet, end);
                    if let Some(other) = other {
                        self.pair_connected(packet, end.0, other);
                    }
                }
            }
            ("REJ" | "DREQ" | "DREP", _) => {
                let ended = [(mine, false), (theirs, true)]
                    .into_iter()
                    .find_map(|(key, turned)| Some((self.connections.exchanges.end(&key?)?, turned)));
                let Some(((one, Some(other)), turned)) = ended else {
                    return;
                };
                let (mine, theirs) = if turned { (other, one) } else { (one, other) };
                self.disconnect(packet, mine, theirs, message.name == "REJ");
            }
            _ => {}
        }
    }

    /// A message that belongs to an attempt to make a connection. The exchange goes by the id of who sent the REQ: `mine` if the message is
    /// from there, else `theirs`.
    fn note_attempt(
        &mut self,
        packet: &Packet,
        message: &Management,
        mine: Option<ExchangeKey>,
        theirs: Option<ExchangeKey>,
    ) {
        let attempts = &mut self.connections.attempts;
        let result = match message.name {
            "REP" => AttemptResult::Connected,
            "REJ" => AttemptResult::Rejected(message.reason.unwrap_or(RejectReason(0))),
            "REQ" => {
                if let Some(key) = mine {
                    attempts.request(key, packet, message);
                }
                return;
            }
            _ => return,
        };
        if let Some(key) = theirs {
            attempts.answer(&key, packet.time, result);
        }
    }

    /// The queue pair `qpn` of who sent `packet` gets a connection: PSNs for it start again, at `first`, and who it belonged
    /// to before it does not belong to any more. What comes for it comes from the other host.
    fn connect(&mut self, packet: &Packet, (qpn, first): (Qpn, Option<Psn>)) {
        for service in CONNECTED {
            let key = FlowKey {
                service,
                ..back(packet, qpn)
            };
            let direction = Direction::new(packet.tap, &key);
            if let Some(known) = self.connections.known_peers.get(&direction) {
                self.connections.known_peers.forget(&direction);
                self.connections
                    .known_peers
                    .forget(&Direction::new(packet.tap, &forth(packet, known.qpn)));
            }
            if let Some(at) = self.table.find_key(packet.tap, &key) {
                self.unlink(at);
                let hot = &mut self.table.hot[at];
                let connected = NewConnection {
                    reason: "the connection manager made a new connection",
                    first,
                };
                self.table.cold[at].tracker.connect(&mut hot.requests, connected);
            }
        }
    }

    /// The queue pairs `mine`, of who sent `packet`, and `theirs` are one connection.
    fn pair_connected(&mut self, packet: &Packet, mine: Qpn, theirs: Qpn) {
        let (back, forth) = (back(packet, mine), forth(packet, theirs));
        for (key, qpn) in [(&back, theirs), (&forth, mine)] {
            let known = KnownPeer {
                qpn,
                how: PairingEvidence::Cm,
                matches: None,
            };
            self.connections
                .known_peers
                .remember(Direction::new(packet.tap, key), known);
        }
        for service in CONNECTED {
            let key = FlowKey { service, ..back };
            if let Some(at) = self.table.find_key(packet.tap, &key) {
                self.link_as_expected(at, packet.time);
            }
        }
    }

    /// The connection of two queue pairs is over: what comes for them from now on may be of another one. The link stays
    /// until answers contradict it, or another connection is made; one that was refused never was.
    fn disconnect(&mut self, packet: &Packet, mine: Qpn, theirs: Qpn, refused: bool) {
        let (back, forth) = (back(packet, mine), forth(packet, theirs));
        for key in [&back, &forth] {
            self.connections
                .known_peers
                .forget(&Direction::new(packet.tap, key));
            for service in CONNECTED {
                if let Some(at) = self.table.find_key(packet.tap, &FlowKey { service, ..*key }) {
                    self.sends_closed(at, packet.time);
                }
            }
        }
        for service in CONNECTED.into_iter().filter(|_| refused) {
            let key = FlowKey { service, ..back };
            if let Some(at) = self.table.find_key(packet.tap, &key) {
                self.forget_peer(at);
            }
        }
    }
}
