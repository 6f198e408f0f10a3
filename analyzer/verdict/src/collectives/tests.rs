//! Shapes over ranges of sizes, amounts and times; and traffic that has none of these shapes.

use proptest::prelude::*;
use roce_model::{FlowId, Time};

use super::*;

const MS: u64 = 1_000_000;
const MB: u64 = 1_000_000;

fn host(number: usize) -> Address {
    let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
    Address::v4([10, 0, high, low])
}

fn flow(from: usize, to: usize, bytes: u64, first: u64, last: u64) -> FlowRow {
    FlowRow {
        flow_id: FlowId((from << 16 | to) as u64),
        source: host(from),
        destination: host(to),
        payload_bytes: bytes,
        first_time: Time(first),
        last_time: Time(last),
        counted: true,
        ..FlowRow::default()
    }
}

/// Connections of so much data each, from 1 ms to 101 ms.
fn found(edges: &[(usize, usize, u64)]) -> Vec<CollectiveRow> {
    let mut collectives = Collectives::default();
    for (from, to, bytes) in edges {
        collectives.flow(&flow(*from, *to, *bytes, MS, 101 * MS));
    }
    collectives.conclude(&[])
}

/// Each of these to the next one, the last to the first.
fn ring(order: &[usize]) -> Vec<(usize, usize, u64)> {
    let next = order.iter().cycle().skip(1);
    order
        .iter()
        .zip(next)
        .map(|(from, to)| (*from, *to, MB))
        .collect()
}

/// Each to each other one.
fn all_to_all(count: usize) -> Vec<(usize, usize, u64)> {
    let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| (from, to, MB))
        .collect()
}

/// Both directions between each member and the one above it, which has half its number.
fn tree(count: usize) -> Vec<(usize, usize, u64)> {
    (2..=count)
        .flat_map(|below| [(below, below / 2, MB), (below / 2, below, MB)])
        .collect()
}

fn hosts(order: &[usize]) -> String {
    order
        .iter()
        .map(|number| host(*number).to_string())
        .collect::<Vec<_>>()
        .join(" > ")
}

#[test]
fn three_members_are_unsure() {
    let rows = found(&ring(&[1, 3, 2]));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].hosts.as_deref(), Some("10.0.0.1 > 10.0.0.3 > 10.0.0.2"));
    assert_eq!(
        (rows[0].confidence, rows[0].both_directions),
        (Confidence::Low, Some(false))
    );
    // Three that all send to each other: a ring in both directions, or all to all.
    assert_eq!(found(&all_to_all(3)), []);
}

#[test]
fn rails_are_numbered() {
    let mut edges = ring(&[1, 2, 3, 4]);
    edges.extend(ring(&[11, 12, 13, 14]));
    let rows = found(&edges);
    let rails: Vec<_> = rows.iter().map(|row| (row.rail, row.hosts.as_deref())).collect();
    let (one, other) = (hosts(&[1, 2, 3, 4]), hosts(&[11, 12, 13, 14]));
    assert_eq!(
        rails,
        [(Some(0), Some(one.as_str())), (Some(1), Some(other.as_str()))]
    );
    assert_eq!(rows[0].payload_bytes, Some(4 * MB));
}

#[test]
fn ranks_are_named_where_they_are_known() {
    let mut collectives = Collectives::default();
    for (from, to, bytes) in ring(&[1, 2, 3, 4]) {
        let mut row = flow(from, to, bytes, MS, 101 * MS);
        row.rank = u32::try_from(from).ok().map(|rank| rank * 8);
        collectives.flow(&row);
    }
    assert_eq!(
        collectives.conclude(&[])[0].ranks.as_deref(),
        Some("8 > 16 > 24 > 32")
    );
    // Two ranks send from one address: whose traffic it is stays open.
    let mut other = flow(1, 2, MB, MS, 101 * MS);
    other.rank = Some(9);
    collectives.flow(&other);
    assert_eq!(collectives.ranks[&host(1)], None);
}

#[test]
fn steps_of_a_job_make_it_sure() {
    let mut collectives = Collectives::default();
    for (from, to, bytes) in ring(&[1, 2, 3, 4]) {
        collectives.flow(&flow(from, to, bytes, MS, 101 * MS));
    }
    let steps: Vec<StepRow> = [(1, 2), (2, 3), (3, 4), (1, 4)]
        .into_iter()
        .flat_map(|(one, other)| {
            (0..3).map(move |step| StepRow {
                step,
                host_a: host(one),
                host_b: host(other),
                ..StepRow::default()
            })
        })
        .collect();
    assert_eq!(collectives.conclude(&steps)[0].confidence, Confidence::High);
    assert_eq!(
        collectives.conclude(&steps[..9])[0].confidence,
        Confidence::Medium,
        "one pair has no steps"
    );
}

#[test]
fn other_traffic_has_no_shape() {
    let incast: Vec<_> = (1..9).map(|from| (from, 9, MB)).collect();
    let both_ways: Vec<_> = (1..9)
        .flat_map(|other| [(other, 9, MB), (9, other, MB)])
        .collect();
    let chain: Vec<_> = (1..9)
        .flat_map(|at| [(at, at + 1, MB), (at + 1, at, MB)])
        .collect();
    let pairs: Vec<_> = (1..9).map(|at| (2 * at, 2 * at + 1, MB)).collect();
    let cut = ring(&[1, 2, 3, 4, 5])[..4].to_vec();
    let mut uneven = ring(&[1, 2, 3, 4]);
    uneven[2].2 = 2 * MB;
    let mut crossed = ring(&[1, 2, 3, 4, 5]);
    crossed.push((1, 3, MB));
    let mut missing = all_to_all(5);
    missing.pop();
    // The two trees of a pair, over the same eight ranks.
    let mut double = tree(8);
    double.extend((2..=8).flat_map(|below| [(9 - below, 9 - below / 2, MB), (9 - below / 2, 9 - below, MB)]));
    for (name, edges) in [
        ("nothing", Vec::new()),
        ("incast", incast),
        ("a star in both directions", both_ways),
        ("a chain", chain),
        ("pairs", pairs),
        ("a ring with a gap", cut),
        ("an uneven ring", uneven),
        ("a ring with a chord", crossed),
        ("all to all with a gap", missing),
        ("two trees", double),
    ] {
        assert_eq!(found(&edges), [], "{name}");
    }
}

#[test]
fn connections_one_after_the_other_are_no_collective() {
    let mut collectives = Collectives::default();
    for (number, (from, to, bytes)) in ring(&[1, 2, 3, 4]).into_iter().enumerate() {
        let first = number as u64 * 100 * MS;
        collectives.flow(&flow(from, to, bytes, first, first + 99 * MS));
    }
    assert_eq!(collectives.conclude(&[]), []);
}

#[test]
fn rows_of_another_tap_do_not_count() {
    let mut collectives = Collectives::default();
    for (from, to, bytes) in ring(&[1, 2, 3, 4]) {
        let mut row = flow(from, to, bytes, MS, 101 * MS);
        collectives.flow(&row);
        row.counted = false;
        collectives.flow(&row);
    }
    assert_eq!(collectives.conclude(&[])[0].payload_bytes, Some(4 * MB));
}

#[test]
fn too_many_pairs_give_no_answer() {
    let mut collectives = Collectives::default();
    for number in 0..=MAX_EDGES {
        let (from, to) = (number % 60_000, number / 60_000 + 60_001);
        collectives.flow(&flow(from, to, MB, MS, 101 * MS));
    }
    assert!(collectives.is_full && collectives.conclude(&[]).is_empty());
}

proptest! {
    /// Rings of 4 to 100 members in any order, with amounts that differ by up to a tenth and small writes the other way.
    #[test]
    fn rings_are_found(
        order in (4usize..100).prop_flat_map(|count| Just((0..count).collect::<Vec<_>>()).prop_shuffle()),
        more in proptest::collection::vec(0u64..MB / 10, 100),
        control in 0u64..MB / 60,
    ) {
        let mut edges = ring(&order);
        for (edge, more) in edges.iter_mut().zip(&more) {
            edge.2 += more;
        }
        let back: Vec<_> = edges.iter().map(|(from, to, _)| (*to, *from, control)).collect();
        edges.extend(back);
        let rows = found(&edges);
        prop_assert_eq!(rows.len(), 1);
        let first = order.iter().position(|member| *member == 0).unwrap();
        let mut expected = order.clone();
        expected.rotate_left(first);
        prop_assert_eq!(rows[0].shape, CollectiveShape::Ring);
        let order = hosts(&expected);
        prop_assert_eq!(rows[0].hosts.as_deref(), Some(order.as_str()));
        prop_assert_eq!((rows[0].both_directions, rows[0].confidence), (Some(false), Confidence::Medium));
    }

    /// Rings that run in both directions.
    #[test]
    fn rings_in_both_directions_are_found(count in 4usize..60) {
        let order: Vec<usize> = (0..count).collect();
        let mut edges = ring(&order);
        let back: Vec<_> = edges.iter().map(|(from, to, bytes)| (*to, *from, *bytes)).collect();
        edges.extend(back);
        // With four members each has two of three others: no all-to-all.
        let rows = found(&edges);
        prop_assert_eq!(rows.len(), 1);
        prop_assert_eq!((rows[0].shape, rows[0].both_directions), (CollectiveShape::Ring, Some(true)));
        prop_assert_eq!(rows[0].members as usize, count);
    }

    /// All to all of 4 to 40 members.
    #[test]
    fn all_to_all_is_found(count in 4usize..40, more in 0u64..MB / 5) {
        let mut edges = all_to_all(count);
        edges[count].2 += more;
        let rows = found(&edges);
        prop_assert_eq!(rows.len(), 1);
        prop_assert_eq!((rows[0].shape, rows[0].members as usize), (CollectiveShape::AllToAll, count));
    }

    /// Binary trees of 6 to 200 members.
    #[test]
    fn trees_are_found(count in 6usize..200) {
        let rows = found(&tree(count));
        prop_assert_eq!(rows.len(), 1);
        prop_assert_eq!((rows[0].shape, rows[0].members as usize), (CollectiveShape::Tree, count));
        // Each member but the middle is below one other.
        let text = rows[0].hosts.as_deref().unwrap();
        prop_assert_eq!(text.matches([',', '>']).count(), count - 1);
    }

    /// Random connections: what is called a shape is one.
    #[test]
    fn random_traffic_is_judged_by_its_definition(edges in proptest::collection::vec((0usize..9, 0usize..9, 1u64..40), 0..60)) {
        let edges: Vec<_> = edges.into_iter().filter(|(from, to, _)| from != to).map(|(from, to, parts)| (from, to, parts * MB / 10)).collect();
        for row in found(&edges) {
            let members = row.members as usize;
            let hosts = row.hosts.unwrap();
            match row.shape {
                CollectiveShape::Ring => {
                    let names: Vec<&str> = hosts.split(" > ").collect();
                    prop_assert_eq!(names.len(), members);
                    for (from, to) in names.iter().zip(names.iter().cycle().skip(1)) {
                        let sent = edges.iter().any(|edge| host(edge.0).to_string() == *from && host(edge.1).to_string() == *to);
                        prop_assert!(sent, "{} > {}", from, to);
                    }
                }
                CollectiveShape::AllToAll => prop_assert!(members >= 4),
                CollectiveShape::Tree => prop_assert!(members >= 5),
            }
        }
    }

    /// A permutation gives its circles of three members or more, each with its own data.
    #[test]
    fn permutations_are_their_circles(order in Just((0..12usize).collect::<Vec<_>>()).prop_shuffle()) {
        let edges: Vec<_> = order.iter().enumerate().filter(|(from, to)| from != *to).map(|(from, to)| (from, *to, MB)).collect();
        for row in found(&edges) {
            prop_assert_eq!(row.shape, CollectiveShape::Ring);
            prop_assert_eq!(row.payload_bytes, Some(u64::from(row.members) * MB));
        }
    }
}
