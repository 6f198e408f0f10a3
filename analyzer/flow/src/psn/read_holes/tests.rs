//! Responses that were lost behind the tap, and such that were overtaken.

use super::*;

/// True if a response to the READ of 10 to 19 counts as lost behind the tap when the requester asks for 12 once more. Responses came to
/// the tap in this order.
fn is_lost(order: &[u64]) -> bool {
    let mut reads = Reads::default();
    reads.requested(10, Some(20));
    for (time, psn) in (0..).zip(order) {
        reads.response(*psn, *psn == 10, *psn == 19, Time(time), 20);
    }
    reads.falls_back(12, true)
}

#[test]
fn a_response_in_order_that_is_requested_again_was_lost_behind_the_tap() {
    assert!(is_lost(&[10, 11, 12, 13, 14]));
}

#[test]
fn where_responses_step_back_without_a_cause_one_may_have_been_overtaken_behind_the_tap() {
    // One READ is answered in the order of PSNs (IBTA 9.7.5.1.9): 13 overtook 11, and 12 may have overtaken 11 behind the tap.
    assert!(!is_lost(&[10, 13, 11, 12, 14]));
}

#[test]
fn a_requester_sees_the_gap_before_the_response_that_it_waits_for() {
    // The rest of the READ came twice: 11 was missing, and 14 was the second time. 15 shows that, at 13 us.
    let mut reads = Reads::default();
    reads.requested(10, Some(20));
    let order = [10, 12, 13, 14, 15, 16, 17, 18, 19, 11, 12, 13, 15];
    for (at, psn) in (1..).zip(order) {
        reads.response(psn, psn == 10, psn == 19, Time(at * 1_000), 20);
    }
    assert_eq!(reads.first_beyond(14), Time(13_000));
    // Nothing behind 15 came since.
    assert_eq!(reads.first_beyond(16), Time(0));
}
