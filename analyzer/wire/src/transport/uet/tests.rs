use super::*;

#[test]
fn lengths_are_those_of_the_types() {
    let of = |number: u8| Prologue([number << 3, 0]).header_bytes();
    // Section "PDS" of both sources: TSS without a source, RUD, ROD, RUDI request and response, UUD, ACK, ACK_CC, ACK_CCX, NACK,
    // control, NACK_CCX, RUD_CC, ROD_CC.
    let expected = [12, 12, 12, 8, 8, 4, 12, 32, 32, 16, 16, 24, 16, 16];
    for (number, bytes) in (1..).zip(expected) {
        assert_eq!(of(number), Some(bytes), "{number}");
        assert!(Kind::from_number(number).is_some());
    }
    assert_eq!((of(0), of(15)), (None, None));
    assert_eq!(Prologue([1 << 3 | 4, 0]).header_bytes(), Some(16));
}

#[test]
fn every_cut_is_read_without_a_panic() {
    let mut bytes = [0xa5_u8; 80];
    for number in 0..32 {
        for next in 0..16_u8 {
            bytes[0] = number << 3 | next >> 1;
            bytes[1] = next << 7;
            for length in 0..bytes.len() {
                let found = parse(&bytes[..length]);
                let whole = Prologue([bytes[0], bytes[1]]).header_bytes();
                assert_eq!(found.is_some(), whole.is_some_and(|whole| length >= whole));
            }
        }
    }
}

#[test]
fn names_are_those_of_the_codes() {
    assert_eq!(
        (nack_name(2), nack_name(0x1a)),
        ("TRIMMED_LASTHOP", "RCVR_INFER_LOSS")
    );
    assert_eq!(
        (nack_name(0x0d), nack_name(0x1b), nack_name(0xfe)),
        ("ROD_OOO", "reserved", "experimental")
    );
    assert_eq!(
        (operation_name(9), operation_name(0x31), operation_name(0x20)),
        ("TAGGED_SEND", "vendor", "reserved")
    );
}

#[test]
fn payload_is_what_the_header_states() {
    let mut bytes = [0_u8; 100];
    // RUD with a standard request: the operation begins at 12. Neither first nor last: 0x1234 & 0x3fff bytes at 12 + 34.
    bytes[..2].copy_from_slice(&(2_u16 << 11 | 3 << 7).to_be_bytes());
    bytes[46..48].copy_from_slice(&0xd234_u16.to_be_bytes());
    let found = parse(&bytes).unwrap();
    assert_eq!((found.header_bytes, found.stated_payload), (56, Some(0x1234)));
    // The only packet of its message: the length of the request at 12 + 40.
    bytes[13] = 3;
    bytes[52..56].copy_from_slice(&700_u32.to_be_bytes());
    assert_eq!(parse(&bytes).unwrap().stated_payload, Some(700));
    // The first one of several: nothing states it.
    bytes[13] = 1;
    assert_eq!(parse(&bytes).unwrap().stated_payload, None);
    // An ACK with data: 12 bits at 12 + 10.
    bytes[..2].copy_from_slice(&(7_u16 << 11 | 5 << 7).to_be_bytes());
    bytes[22..24].copy_from_slice(&0xf321_u16.to_be_bytes());
    let found = parse(&bytes).unwrap();
    assert_eq!((found.header_bytes, found.stated_payload), (32, Some(0x321)));
}
