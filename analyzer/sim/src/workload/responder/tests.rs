use super::*;

fn request(seq: u64) -> Request {
    Request {
        seq,
        span: 1,
        is_read: false,
        length: 0,
        payload: 10,
        first: true,
        last: true,
        receives: false,
        ack_requested: true,
    }
}

fn reply(responder: &mut Responder, seq: u64) -> Option<Reply> {
    responder.reliable(request(seq)).reply
}

#[test]
fn one_nak_for_a_gap() {
    let mut responder = Responder::new(Recovery::GoBackN, 1, None);
    assert_eq!(reply(&mut responder, 0), Some(Reply::Ack(1)));
    assert_eq!(reply(&mut responder, 2), Some(Reply::Nak(1)));
    assert_eq!(reply(&mut responder, 3), None);
    assert_eq!(reply(&mut responder, 1), Some(Reply::Ack(2)));
    assert_eq!(reply(&mut responder, 3), Some(Reply::Nak(2)), "2 was dropped");
    assert_eq!(reply(&mut responder, 0), Some(Reply::Ack(2)), "a duplicate");
}

#[test]
fn selective_recovery_keeps_what_comes_early() {
    let mut responder = Responder::new(Recovery::Selective, 1, None);
    assert_eq!(reply(&mut responder, 1), Some(Reply::Nak(0)));
    assert_eq!(reply(&mut responder, 3), None);
    // 0 fills the first hole, 1 was kept, 2 is the next hole.
    assert_eq!(reply(&mut responder, 0), Some(Reply::Nak(2)));
    let outcome = responder.reliable(request(2));
    assert_eq!((outcome.reply, outcome.messages), (Some(Reply::Ack(4)), 2));
}

#[test]
fn acks_are_held_back() {
    let mut responder = Responder::new(Recovery::GoBackN, 2, None);
    assert!(responder.reliable(request(0)).holds);
    assert_eq!(reply(&mut responder, 1), Some(Reply::Ack(2)));
    assert!(responder.reliable(request(2)).holds);
    assert_eq!(responder.release(), Some(Reply::Ack(3)));
    assert_eq!(responder.release(), None);
}

#[test]
fn without_a_buffer_it_is_not_ready() {
    let send = |seq| Request {
        receives: true,
        ..request(seq)
    };
    let mut responder = Responder::new(Recovery::GoBackN, 1, Some(1));
    assert_eq!(responder.reliable(send(0)).reply, Some(Reply::Ack(1)));
    assert_eq!(responder.reliable(send(1)).reply, Some(Reply::NotReady(1)));
    assert_eq!(responder.reliable(send(2)).reply, None, "one RNR NAK");
    responder.receives = Some(1);
    assert_eq!(responder.reliable(send(1)).reply, Some(Reply::Ack(2)));
}

#[test]
fn unreliable_messages_need_all_their_packets() {
    let part = |seq, first, last| Request {
        first,
        last,
        ..request(seq)
    };
    let mut responder = Responder::new(Recovery::GoBackN, 1, None);
    responder.unreliable(part(0, true, false));
    assert_eq!(responder.unreliable(part(1, false, true)).messages, 1);
    responder.unreliable(part(2, true, false));
    assert_eq!(responder.unreliable(part(4, false, true)).messages, 0);
    assert_eq!(responder.unreliable(part(5, true, true)).messages, 1);
}
