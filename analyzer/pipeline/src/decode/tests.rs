use super::*;

#[test]
fn shards_are_even_and_equal_in_both_directions() {
    // 64 hosts, each talking to the one with its own number: as in a rack.
    let mut taken = [0; 2];
    for n in 0..64 {
        let (a, b) = ([10, 0, 0, n], [10, 0, 1, n]);
        let packet = |source, destination| Roce {
            source: Address::v4(source),
            destination: Address::v4(destination),
            ..Roce::default()
        };
        for index in 0..2 {
            let shard = Shard { index, of: 2 };
            let there = shard.takes(&packet(a, b));
            assert_eq!(there, shard.takes(&packet(b, a)));
            let plain = shard.takes_hosts(ipv4_hash(u32::from_be_bytes(a)), ipv4_hash(u32::from_be_bytes(b)));
            assert_eq!(there, plain, "the frame gives the packet's shard");
            taken[index as usize] += u32::from(there);
        }
    }
    assert_eq!(taken[0] + taken[1], 64);
    assert!(taken.iter().all(|taken| (20..=44).contains(taken)), "{taken:?}");
}
