//! Link modes that a network interface supports (`ETHTOOL_GLINKSETTINGS`). Needs no rights.

use crate::ethtool::{ask, first, open_socket, pair, second};

const GET_LINK_SETTINGS: u32 = 0x4c;
/// Words of a mask, at most: their number is a signed byte.
const MAX_WORDS: usize = 127;
/// Bytes of `struct ethtool_link_settings` before its masks: command and speed, eight of its medium, eight words that nobody uses.
const HEAD_BYTES: usize = 48;
/// Place in it of the number of words of a mask. A request with 0 makes the kernel answer with their number, negated.
const WORDS_AT: usize = 15;

/// Speeds of link modes in Mbit/s, by their bits (`enum ethtool_link_mode_bit_indices`): first, last, speed. What is no speed, such as a
/// medium or an error correction, is left out.
const SPEEDS: [(usize, usize, u64); 35] = [
    (0, 1, 10),
    (2, 3, 100),
    (4, 5, 1_000),
    (12, 12, 10_000),
    (15, 15, 2_500),
    (17, 17, 1_000),
    (18, 20, 10_000),
    (21, 22, 20_000),
    (23, 26, 40_000),
    (27, 30, 56_000),
    (31, 33, 25_000),
    (34, 35, 50_000),
    (36, 39, 100_000),
    (40, 40, 50_000),
    (41, 41, 1_000),
    (42, 46, 10_000),
    (47, 47, 2_500),
    (48, 48, 5_000),
    (52, 56, 50_000),
    (57, 61, 100_000),
    (62, 66, 200_000),
    (67, 67, 100),
    (68, 68, 1_000),
    (69, 73, 400_000),
    (75, 79, 100_000),
    (80, 84, 200_000),
    (85, 89, 400_000),
    (90, 91, 100),
    (92, 92, 10),
    (93, 98, 800_000),
    (99, 102, 10),
    (103, 108, 200_000),
    (109, 114, 400_000),
    (115, 120, 800_000),
    (121, 124, 1_600_000),
];

/// The speed of the fastest link mode that an interface supports, in bit/s; `None` where its driver does not say, as software's.
pub fn most_speed(interface: &str) -> Option<u64> {
    let socket = open_socket().ok()?;
    // Supported modes, then advertised ones and the other end's.
    let mut settings = [0_u64; (HEAD_BYTES + 3 * MAX_WORDS * 4).div_ceil(8)];
    let mut words = 0_u8;
    // Twice: how many words there are, then the words.
    for _ in 0..2 {
        settings[0] = pair(GET_LINK_SETTINGS, 0);
        settings[1] = u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 0, words]);
        ask(&socket, interface, &mut settings).ok()?;
        let answer = settings[WORDS_AT / 8].to_ne_bytes()[WORDS_AT % 8];
        words = if words == 0 { answer.wrapping_neg() } else { answer };
        if usize::from(words) > MAX_WORDS {
            return None;
        }
    }
    let masks = settings.get(HEAD_BYTES / 8..)?.iter();
    let masks: Vec<u32> = masks.flat_map(|both| [first(*both), second(*both)]).collect();
    fastest(masks.get(..usize::from(words))?)
}

/// The fastest of the modes whose bits are set, in bit/s.
fn fastest(modes: &[u32]) -> Option<u64> {
    let is_set = |bit: &usize| {
        modes
            .get(bit / 32)
            .is_some_and(|word| word >> (bit % 32) & 1 == 1)
    };
    let set = SPEEDS
        .iter()
        .filter(|(first, last, _)| (*first..=*last).any(|bit| is_set(&bit)));
    set.map(|(_, _, speed)| speed * 1_000_000).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_mode_counts() {
        // ETHTOOL_LINK_MODE_40000baseCR4_Full_BIT is 24, 10000baseCR 42, FIBRE 10, FEC_RS 50.
        let mut modes = [1 << 24 | 1 << 10, 1 << (42 - 32) | 1 << (50 - 32)];
        assert_eq!(fastest(&modes), Some(40_000_000_000));
        modes[0] = 1 << 10;
        assert_eq!(fastest(&modes), Some(10_000_000_000));
        modes[1] = 1 << (50 - 32);
        assert_eq!(fastest(&modes), None);
        // 400000baseCR4 is 89.
        assert_eq!(fastest(&[0, 0, 1 << (89 - 64)]), Some(400_000_000_000));
        assert_eq!(fastest(&[]), None);
    }

    #[test]
    fn what_has_no_link_says_nothing() {
        assert_eq!(most_speed("lo"), None);
        assert_eq!(most_speed("no such thing"), None);
        assert_eq!(most_speed("a name that is too long"), None);
    }
}
