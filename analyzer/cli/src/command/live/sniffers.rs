//! Captures from RDMA devices: what their packets lack.

use roce_capture::live::Device;

use crate::output::messages;

/// Limits of a capture from RDMA devices, for readers of its packets.
const SNIFFER: &str = "captured by libpcap's RDMA sniffer: the host stamps packets in batches, so times within a batch \
mean little; it has 128 receive buffers, whatever --buffer says, and packets that find none free are lost uncounted (acknowledged PSNs \
that are missing show them)";

/// Says what captures of RDMA devices lack.
pub(super) fn warn_of_sniffers(devices: &[Device]) {
    for device in devices.iter().filter(|device| device.is_rdma()) {
        messages::warn(device.name(), SNIFFER);
    }
}
