use super::*;

fn limits() -> Limits {
    Limits {
        mtu: 1024,
        window: 1 << 20,
        reads: 2,
        ack_every: 0,
        timeout: Picos(1_000),
        retries: 2,
        rnr_retries: Some(1),
        recovery: Recovery::GoBackN,
    }
}

fn seqs(requester: &mut Requester, most: usize) -> Vec<(u64, u16)> {
    (0..most)
        .map_while(|_| {
            requester
                .send(Picos(10))
                .map(|packet| (packet.seq, packet.attempt))
        })
        .collect()
}

#[test]
fn a_message_becomes_packets() {
    let mut requester = Requester::new(limits());
    requester.post(Operation::Write, 2500, 7);
    let packets: Vec<_> = std::iter::from_fn(|| requester.send(Picos(0))).collect();
    // 2500 = 1024 + 1024 + 452.
    assert_eq!(
        packets
            .iter()
            .map(|p| (p.seq, p.bytes, p.ack_request))
            .collect::<Vec<_>>(),
        [(0, 1024, false), (1, 1024, false), (2, 452, true)]
    );
    assert_eq!(requester.acknowledged(3, Picos(5)), [7]);
    assert!(!requester.is_busy());
    assert_eq!(requester.deadline, Picos::NEVER);
}

#[test]
fn a_nak_goes_back() {
    let mut requester = Requester::new(limits());
    requester.post(Operation::Write, 5 * 1024, 0);
    seqs(&mut requester, 5);
    let (done, again) = requester.refused(2, Picos(20));
    assert!(done.is_empty() && again);
    let packet = requester.send(Picos(21)).unwrap();
    assert_eq!(
        (packet.seq, packet.attempt, packet.begins_run),
        (2, 1, Some(Trigger::Nak))
    );
    let packet = requester.send(Picos(22)).unwrap();
    assert_eq!((packet.seq, packet.begins_run), (3, None));
    // An old NAK does nothing.
    assert_eq!(requester.refused(1, Picos(23)), (vec![], false));
}

#[test]
fn selective_recovery_sends_one_packet_again() {
    let mut requester = Requester::new(Limits {
        recovery: Recovery::Selective,
        ..limits()
    });
    requester.post(Operation::Write, 6 * 1024, 0);
    seqs(&mut requester, 4);
    requester.refused(1, Picos(20));
    assert_eq!(seqs(&mut requester, 9), [(1, 1), (4, 0), (5, 0)]);
}

#[test]
fn silence_is_answered_until_patience_ends() {
    let mut requester = Requester::new(limits());
    requester.post(Operation::Write, 2 * 1024, 0);
    seqs(&mut requester, 2);
    // ACK requested at 10 with the last packet, patience 1,000.
    assert_eq!(requester.deadline, Picos(1_010));
    requester.timed_out(Picos(1_010));
    let packet = requester.send(Picos(1_010)).unwrap();
    assert_eq!((packet.seq, packet.begins_run), (0, Some(Trigger::Timeout)));
    requester.send(Picos(1_011));
    // Doubled: 1,011 + 2,000.
    assert_eq!(requester.deadline, Picos(3_011));
    requester.timed_out(Picos(3_011));
    assert!(requester.failure.is_none());
    requester.timed_out(Picos(9_000));
    assert!(requester.failure == Some(Failure::Retries) && !requester.can_send());
}

#[test]
fn a_read_takes_the_psns_of_its_responses() {
    let mut requester = Requester::new(limits());
    for _ in 0..3 {
        requester.post(Operation::Read, 3000, 1);
    }
    let packets: Vec<_> = std::iter::from_fn(|| requester.send(Picos(0))).collect();
    // Two outstanding READs of 3 PSNs each.
    assert_eq!(
        packets
            .iter()
            .map(|p| (p.seq, p.span, p.bytes))
            .collect::<Vec<_>>(),
        [(0, 3, 3000), (3, 3, 3000)]
    );
    assert_eq!(requester.response(0, Picos(1)), Some(vec![]));
    // Response 1 is lost: 2 implies it, and the request for the rest goes out again.
    assert_eq!(requester.response(2, Picos(2)), None);
    let packet = requester.send(Picos(3)).unwrap();
    assert_eq!(
        (packet.seq, packet.span, packet.bytes, packet.begins_run),
        (1, 2, 3000 - 1024, Some(Trigger::ImpliedNak))
    );
    assert_eq!(requester.response(1, Picos(4)), Some(vec![]));
    assert_eq!(requester.response(2, Picos(4)), Some(vec![1]));
}

#[test]
fn an_rnr_nak_makes_it_wait() {
    let mut requester = Requester::new(limits());
    requester.post(Operation::Send, 100, 0);
    seqs(&mut requester, 1);
    let (_, wait) = requester.not_ready(0, Picos(5));
    assert!(!requester.can_send());
    requester.ready(wait.unwrap() + 1);
    assert!(!requester.can_send(), "another wait");
    requester.ready(wait.unwrap());
    let packet = requester.send(Picos(9)).unwrap();
    assert_eq!(packet.begins_run, Some(Trigger::Rnr));
}

#[test]
fn rnr_naks_without_progress_end_it() {
    let mut requester = Requester::new(limits());
    requester.post(Operation::Send, 2 * 1024, 0);
    seqs(&mut requester, 2);
    let (_, wait) = requester.not_ready(0, Picos(5));
    requester.ready(wait.unwrap());
    seqs(&mut requester, 2);
    // Progress: the next refusal is the first of another row.
    let (_, wait) = requester.not_ready(1, Picos(9));
    requester.ready(wait.unwrap());
    seqs(&mut requester, 1);
    assert_eq!(requester.outstanding(), Some((1, 2)));
    assert_eq!(requester.not_ready(1, Picos(12)), (vec![], None));
    assert_eq!(requester.failure, Some(Failure::RnrRetries));
}
