//! Sends frames out of a device, as they are: for tests, and to replay what was captured.

use std::fmt;

use pcap::{Active, Capture};

use super::error::Error;

/// A device that frames are sent out of.
pub struct Injector {
    device: String,
    handle: Capture<Active>,
}

impl Injector {
    /// Opens a device to send.
    ///
    /// # Errors
    /// When libpcap cannot open it.
    pub fn open(device: &str) -> Result<Self, Error> {
        let opened = Capture::from_device(device).and_then(Capture::open);
        let handle = opened.map_err(|error| Error::Open {
            device: device.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            device: device.to_owned(),
            handle,
        })
    }

    /// Sends a frame, link header first.
    ///
    /// # Errors
    /// When the system does not take it: it is longer than the device's MTU allows, or the device is down.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), Error> {
        self.handle.sendpacket(frame).map_err(|error| Error::Send {
            device: self.device.clone(),
            bytes: frame.len(),
            reason: error.to_string(),
        })
    }
}

impl fmt::Debug for Injector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
