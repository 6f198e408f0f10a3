//! Any bytes as a frame: decoding must not panic, both paths must agree, and what is reported must lie in the frame.
//!
//! The first two bytes choose the link type and how much longer than the captured bytes the frame was.

#![no_main]

use std::fmt::Write as _;

use libfuzzer_sys::fuzz_target;
use roce_wire::icrc::{self, Icrc};
use roce_wire::management::cm::Message;
use roce_wire::management::mad::Datagram;
use roce_wire::transport::Transport;
use roce_wire::{Content, CutLimit, ExtendedHeaders, LinkType, decode, fast, general};

/// Ethernet twice as often as the others.
const LINKS: [LinkType; 12] = [
    LinkType::ETHERNET,
    LinkType::ETHERNET,
    LinkType::RAW,
    LinkType::NULL,
    LinkType::LOOP,
    LinkType::LINUX_SLL,
    LinkType::LINUX_SLL2,
    LinkType::ERF,
    LinkType::USER0,
    LinkType::INFINIBAND,
    LinkType::IPV4,
    LinkType::IPV6,
];

fuzz_target!(|data: &[u8]| {
    let Some(([link, more], frame)) = data.split_first_chunk() else {
        return;
    };
    let link = LINKS[usize::from(*link) % LINKS.len()];
    let Ok(captured) = u32::try_from(frame.len()) else {
        return;
    };
    // 0 is a whole frame, 255 an original length that is too small: some capture tools write such.
    let original = match more {
        255 => captured / 2,
        more => captured + u32::from(*more) * 16,
    };

    let decoded = decode(link, frame, original);
    let by_general = general::decode(link, frame, original);
    assert_eq!(decoded, by_general);
    if let Some(roce) = fast::decode(link, frame, original) {
        assert_eq!(decoded.content, Content::Roce(roce));
        assert_eq!((decoded.stop, decoded.mirror), (None, None));
    }

    let _ = decoded.telemetry.hops(frame);
    let mut text = String::new();
    if let Some(stop) = decoded.stop {
        assert!(stop.needed > stop.had || stop.cut == CutLimit::Depth, "{stop}");
        assert!(stop.offset <= original.max(captured).saturating_add(0xffff));
        let _ = write!(text, "{stop}");
    }
    match decoded.content {
        Content::Roce(roce) => {
            let bth = usize::from(roce.bth_offset);
            assert!(bth + 12 <= frame.len() && roce.network_offset < roce.bth_offset);
            let _ = write!(
                text,
                "{} {} {} {}",
                roce.bth, roce.aeth, roce.through, roce.carrier
            );
            let _ = write!(text, "{} {}", roce.source, roce.destination);
            let headers = Transport::parse(&frame[bth..]).expect("the BTH is there");
            assert_eq!(headers.bth, roce.bth);
            // The headers of MRC are of its own length, and not of those that the opcode names.
            assert!(roce.seen == ExtendedHeaders::MRC || headers.seen.has(roce.seen));
            if icrc::check(frame, &roce) != Icrc::NotCheckable {
                assert!(icrc::compute(frame, &roce).is_some());
            }
            if let Some(message) =
                Datagram::parse(frame, &roce).and_then(|datagram| Message::parse(&datagram))
            {
                let _ = write!(text, "{message}");
            }
        }
        Content::Uet(roce) | Content::Copy(roce) => {
            assert!(usize::from(roce.bth_offset) <= frame.len());
        }
        Content::Pause(pause) => {
            let _ = write!(text, "{pause}");
        }
        Content::Fragment | Content::Other(_) => {}
    }
});
