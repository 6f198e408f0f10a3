//! PCI configuration space: Device Control of the PCI Express capability, Access Control Services, Address Translation Services.

/// Bytes that a process without CAP_SYS_ADMIN may read (Linux drivers/pci/pci-sysfs.c).
pub(crate) const UNPRIVILEGED: usize = 64;
/// PCI Express capability (PCI Code and ID Assignment Specification).
const EXPRESS: u8 = 0x10;
/// Extended capabilities: Access Control Services, Address Translation Services.
const ACS: u16 = 0x000d;
const ATS: u16 = 0x000f;
/// Capabilities that are followed: a list may lead back to itself.
const MAX_CAPABILITIES: usize = 96;

/// A device's configuration space.
pub(crate) struct ConfigSpace<'a>(pub(crate) &'a [u8]);

impl ConfigSpace<'_> {
    fn u16_at(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(at..at + 2)?.try_into().ok()?))
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at + 4)?.try_into().ok()?))
    }

    /// Where a capability is (PCI Local Bus 3.0, 6.7).
    fn capability(&self, wanted: u8) -> Option<usize> {
        let mut at = usize::from(*self.0.get(0x34)? & 0xfc);
        for _ in 0..MAX_CAPABILITIES {
            if at < UNPRIVILEGED {
                return None;
            }
            if *self.0.get(at)? == wanted {
                return Some(at);
            }
            at = usize::from(*self.0.get(at + 1)? & 0xfc);
        }
        None
    }

    /// Where an extended capability is (PCI Express Base 5.0, 7.6.3).
    fn extended(&self, wanted: u16) -> Option<usize> {
        let mut at = 0x100;
        for _ in 0..MAX_CAPABILITIES {
            let header = self.u32_at(at)?;
            if header == 0 || header == u32::MAX {
                return None;
            }
            if header & 0xffff == u32::from(wanted) {
                return Some(at);
            }
            at = (header >> 20 & 0xffc) as usize;
            if at < 0x100 {
                return None;
            }
        }
        None
    }

    /// Largest payload and read request that are set, in bytes (PCI Express Base 5.0, 7.5.3.4).
    pub(crate) fn sizes(&self) -> Option<(u32, u32)> {
        let control = self.u16_at(self.capability(EXPRESS)? + 8)?;
        let size = |bits: u16| 128_u32 << (bits & 7).min(5);
        Some((size(control >> 5), size(control >> 12)))
    }

    /// Control bits of Access Control Services (7.7.8.3); `None`: the device has none.
    pub(crate) fn acs(&self) -> Option<u16> {
        self.u16_at(self.extended(ACS)? + 6)
    }

    /// True if Address Translation Services are enabled (10.5.1.3); `None`: the device has none.
    pub(crate) fn ats(&self) -> Option<bool> {
        Some(self.u16_at(self.extended(ATS)? + 6)? >> 15 == 1)
    }

    /// True if the extended space was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.len() > 0x100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A space with the PCI Express capability at 0x60 behind power management at 0x40, ACS at 0x100, ATS at 0x148.
    fn space() -> Vec<u8> {
        let mut space = vec![0; 4096];
        space[0x34] = 0x40;
        space[0x40..0x42].copy_from_slice(&[0x01, 0x60]);
        space[0x60..0x62].copy_from_slice(&[0x10, 0x00]);
        // Payload 256 (1 in bits 7:5), read request 4096 (5 in bits 14:12).
        space[0x68..0x6a].copy_from_slice(&0x5020_u16.to_le_bytes());
        space[0x100..0x104].copy_from_slice(&(0x0001_000d_u32 | 0x148 << 20).to_le_bytes());
        space[0x106..0x108].copy_from_slice(&0x001d_u16.to_le_bytes());
        space[0x148..0x14c].copy_from_slice(&0x0001_000f_u32.to_le_bytes());
        space[0x14e..0x150].copy_from_slice(&0x8000_u16.to_le_bytes());
        space
    }

    #[test]
    fn capabilities_are_found_and_read() {
        let bytes = space();
        let space = ConfigSpace(&bytes);
        assert_eq!(space.sizes(), Some((256, 4096)));
        assert_eq!(space.acs(), Some(0x1d));
        assert_eq!(space.ats(), Some(true));
    }

    #[test]
    fn what_is_cut_or_circular_gives_nothing() {
        let bytes = space();
        for length in 0..0x6a {
            assert_eq!(ConfigSpace(&bytes[..length]).sizes(), None, "{length}");
        }
        let mut circular = space();
        circular[0x41] = 0x40;
        assert_eq!(ConfigSpace(&circular).sizes(), None);
        circular[0x100..0x104].copy_from_slice(&(0x0001_0001_u32 | 0x100 << 20).to_le_bytes());
        assert_eq!(ConfigSpace(&circular).acs(), None);
        assert_eq!(ConfigSpace(&[0xff; 4096]).acs(), None);
    }
}
