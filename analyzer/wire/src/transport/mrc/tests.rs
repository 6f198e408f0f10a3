extern crate std;

use std::vec::Vec;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

/// A Reliability SACK, a NACK and a probe with every field distinct, as two public decoders read them: pcap-view's `mrc.js` and
/// MRC-Client's `core`.
const SACK_BYTES: &str = "dc00ffff0001020300abc005 0020ffef0beec0de0b0c020300abc0050a0800078040201008040201 24681235c5abcdef 12c49dc6";
const NACK_BYTES: &str = "dd00ffff0001020300123456 00000177cafef00d0b0c02030012345623004321 eed59869";
const PROBE_BYTES: &str = "de00ffff000a0b0c00000000 0000005a9999000002030b0c11118001 7cfc5e08";
const REQUEST_BYTES: &str = "d800ffff000000020000abcd 00000042800000050000000022220001 777905fc";
const RESPONSE_BYTES: &str = "d900ffff000000020000abcd 0004000000000000000000000000000000000000000000000000000022220000 00000000 99f54a4f";
/// A WRITE Last with Immediate that is sent again, with a TSETH; its payload is cut.
const WRITE_BYTES: &str =
    "c900ffff000a0b0cb0abc007 1237567b 246b0001 fedcba98765432d01122334400000400 89abcdef";

#[test]
fn a_sack_is_read_field_by_field() {
    let bytes = bytes(SACK_BYTES);
    let Some(headers @ Headers::Sack(seth, Some(state))) = parse(&bytes) else {
        panic!("a SACK");
    };
    assert!(headers.is_proof(bytes.len()) && !headers.is_proof(bytes.len() + 1));
    assert_eq!((seth.advice(), seth.answers_probe()), (1, false));
    assert_eq!((seth.named_offset(), seth.entropy()), (-17, 0x0bee_c0de));
    assert_eq!(seth.ids(), [0x0b0c, 0x0203]);
    assert_eq!(seth.cumulative(), Psn::new(0x00ab_c005));
    assert_eq!(
        (seth.congestion_type(), seth.window(), seth.bitmap_offset()),
        (0, 8, 7)
    );
    assert_eq!(seth.bitmap(), 0x8040_2010_0804_0201);
    assert_eq!((state.reflected_time(), state.out_of_order()), (0x2468, 0x1235));
    assert_eq!(
        (state.restores_window(), state.penalty(), state.received()),
        (true, 0x45, 0x00ab_cdef)
    );
}

#[test]
fn other_control_packets_are_read_field_by_field() {
    let nack = bytes(NACK_BYTES);
    let Some(headers @ Headers::Nack(neth)) = parse(&nack) else {
        panic!("a NACK");
    };
    assert!(headers.is_proof(nack.len()));
    assert_eq!(
        (neth.reason(), neth.vendor(), neth.entropy()),
        (1, 0x77, 0xcafe_f00d)
    );
    assert_eq!(
        (neth.ids(), neth.psn()),
        ([0x0b0c, 0x0203], Psn::new(0x0012_3456))
    );
    assert_eq!(neth.reflected_time(), 0x4321);
    let probe = bytes(PROBE_BYTES);
    let Some(headers @ Headers::Probe(peth)) = parse(&probe) else {
        panic!("a probe");
    };
    assert!(headers.is_proof(probe.len()));
    assert_eq!(
        (peth.vendor(), peth.number(), peth.ids()),
        (0x5a, 0x9999, [0x0203, 0x0b0c])
    );
    assert_eq!((peth.time(), peth.has_own_resolution()), (0x1111, true));
    let request = bytes(REQUEST_BYTES);
    let Some(Headers::Request(asked)) = parse(&request) else {
        panic!("a request");
    };
    assert_eq!(
        (asked.operation(), asked.vendor(), asked.ports(), asked.time()),
        (0, 0x42, 0x8000_0005, 0x2222)
    );
    let response = bytes(RESPONSE_BYTES);
    let Some(Headers::Response(answer)) = parse(&response) else {
        panic!("a response");
    };
    assert_eq!((answer.operation(), answer.reflected_time()), (1, 0x2222));
}

#[test]
fn a_write_has_its_own_headers_in_every_packet() {
    let bytes = bytes(WRITE_BYTES);
    let bth = Bth(*bytes.first_chunk().unwrap_or(&[0; 12]));
    assert!(is_again(&bth) && has_time(&bth));
    let Some(Headers::Write {
        meth,
        time,
        reth,
        immediate,
    }) = parse(&bytes)
    else {
        panic!("a WRITE");
    };
    assert_eq!((meth.immediate_number(), meth.message_number()), (0x1237, 0x567b));
    assert_eq!(
        time.map(|it| (it.time(), it.has_own_resolution())),
        Some((0x246b, false))
    );
    assert_eq!(
        (reth.virtual_address(), reth.dma_length()),
        (0xfedc_ba98_7654_32d0, 1024)
    );
    assert_eq!(immediate.map(|it| it.data()), Some(0x89ab_cdef));
    // A table of the specification: 36 and 40 bytes of UDP payload besides data, 40 and 44 with immediate.
    for (code, time, length) in [
        (0xc6, 0, 36),
        (0xc8, 0x10, 40),
        (0xca, 0, 36),
        (0xc9, 0, 40),
        (0xcb, 0x10, 44),
    ] {
        let mut bth = bth;
        (bth.0[0], bth.0[8]) = (code, time);
        assert_eq!(header_bytes(&bth).map(|it| it + Bth::BYTES + 4), Some(length));
    }
}

/// No length and no content of a packet is one that the reader trips over.
#[test]
fn mutated_packets_are_read_or_refused() {
    let mut state = 0x1234_5678_9abc_def0_u64;
    for text in [
        SACK_BYTES,
        NACK_BYTES,
        PROBE_BYTES,
        REQUEST_BYTES,
        RESPONSE_BYTES,
        WRITE_BYTES,
    ] {
        let whole = bytes(text);
        for length in 0..=whole.len() {
            let needed = header_bytes(&Bth(*whole.first_chunk().unwrap_or(&[0; 12]))).unwrap_or(0);
            assert_eq!(
                parse(&whole[..length]).is_some(),
                length >= Bth::BYTES + needed,
                "{text} {length}"
            );
        }
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mut mutated = whole.clone();
            let at = usize::try_from(state >> 33).unwrap_or(0) % mutated.len();
            mutated[at] = (state >> 25 & 0xff) as u8;
            let cut = usize::try_from(state >> 9 & 0xff).unwrap_or(0);
            mutated.truncate(cut.max(12));
            let bth = Bth(*mutated.first_chunk().unwrap_or(&[0; 12]));
            let is_read = parse(&mutated).is_some();
            assert_eq!(is_read, whole_header(&bth, mutated.len(), None).is_some());
        }
    }
}
