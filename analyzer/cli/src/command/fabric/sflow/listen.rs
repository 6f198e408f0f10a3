//! Datagrams as they arrive, at one socket and for a limited time.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use roce_model::Span;
use roce_pipeline::time_of_day;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

use super::reader::DatagramReader;
use crate::command::watch::Signals;
use crate::output::messages;
use crate::sandbox::{confine, offline};

/// The longest datagram of UDP.
const MAX_DATAGRAM: usize = 65_535;

/// Takes datagrams for a time, or until a signal. Before the first one it gives up the rights to open files and sockets and to start
/// programs.
pub(super) fn listen(address: SocketAddr, duration: Span, reader: &mut DatagramReader) -> anyhow::Result<()> {
    let (runtime, mut signals) = Signals::take()?;
    let socket = {
        let _inside = runtime.enter();
        runtime
            .block_on(UdpSocket::bind(address))
            .with_context(|| format!("{address}: it cannot be listened at"))?
    };
    let bound = socket.local_addr().unwrap_or(address);
    if !bound.ip().is_loopback() {
        messages::warn(
            &bound.to_string(),
            "sFlow has no passwords: whoever reaches this port can send samples",
        );
    }
    messages::note(
        &bound.to_string(),
        &format!("listening for {} s", duration.seconds()),
    );
    if !confine(&[], &[]).context("its rights cannot be given up")? {
        messages::warn(
            "rights",
            "this kernel has no Landlock: the run can open every file that its user may",
        );
    }
    offline();
    let limit = Instant::now() + Duration::from_nanos(duration.0);
    let mut bytes = vec![0; MAX_DATAGRAM];
    runtime.block_on(async {
        loop {
            let received = tokio::select! {
                biased;
                _ = signals.next() => return Ok(()),
                () = sleep_until(limit) => return Ok(()),
                received = socket.recv_from(&mut bytes) => received,
            };
            let (length, sender) = received.with_context(|| format!("{bound}: datagrams cannot be read"))?;
            let taken = bytes.get(..length).unwrap_or_default();
            let place = || format!("a datagram of {sender}");
            reader.add(time_of_day(), sender.ip(), taken, place);
        }
    })
}
