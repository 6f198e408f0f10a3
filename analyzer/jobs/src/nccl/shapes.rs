//! Rings and trees of communicators, as their ranks print them (`src/init.cc`, `src/graph/connect.cc`, subsystem GRAPH or INIT).

use std::collections::{BTreeMap, BTreeSet};

/// Steps of rings and trees that are kept.
const MAX_STEPS: usize = 1 << 20;

/// A fact about the shape of one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// `Channel 00/02 : 0 1 2`: all ranks in the ring's order.
    Order(u32, Vec<u32>),
    /// `Ring 00 : 2 -> 0 -> 1`: the ranks before and behind one.
    Next(u32, [u32; 3]),
    /// `[0] 1/2/-1->0->-1`: a rank and the one above it in the tree; `None`: it is the root.
    Above(u32, u32, Option<u32>),
}

/// The facts in a line's text; `None`: it has none, and is not of this kind.
pub(super) fn facts(text: &str) -> Option<Vec<Fact>> {
    if let Some(rest) = text.strip_prefix("Trees ") {
        return Some(trees(rest));
    }
    if let Some(rest) = text.strip_prefix("Ring ") {
        let (channel, rest) = rest.split_once(':')?;
        let channel = channel.trim().parse().ok()?;
        let ranks: Vec<u32> = rest
            .split("->")
            .filter_map(|rank| rank.split_whitespace().next()?.parse().ok())
            .take(4)
            .collect();
        let around = <[u32; 3]>::try_from(ranks).ok()?;
        return Some(vec![Fact::Next(channel, around)]);
    }
    let (channel, rest) = text.strip_prefix("Channel ")?.split_once(':')?;
    let channel = channel.split('/').next()?.trim().parse().ok()?;
    let ranks: Option<Vec<u32>> = rest.split_whitespace().map(|rank| rank.parse().ok()).collect();
    let ranks = ranks.filter(|ranks| !ranks.is_empty())?;
    Some(vec![Fact::Order(channel, ranks)])
}

/// `[0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1`; to 2.8 with a second form behind a bar, which says the same.
fn trees(text: &str) -> Vec<Fact> {
    let mut found = Vec::new();
    for part in text.split('[').skip(1) {
        let Some((channel, tree)) = part.split_once(']') else {
            continue;
        };
        let tree = tree.split('|').next().unwrap_or_default().trim();
        let ends: Vec<&str> = tree.split("->").collect();
        if let (Ok(channel), [_, rank, above]) = (channel.trim().parse(), ends.as_slice())
            && let (Ok(rank), Ok(above)) = (
                rank.trim().parse(),
                above.split_whitespace().next().unwrap_or_default().parse::<i64>(),
            )
        {
            found.push(Fact::Above(channel, rank, u32::try_from(above).ok()));
        }
    }
    found
}

/// The shapes of one communicator, by channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shapes {
    next: BTreeMap<u32, BTreeMap<u32, u32>>,
    above: BTreeMap<u32, BTreeMap<u32, Option<u32>>>,
}

impl Shapes {
    /// Notes a fact. `steps` counts those that are kept; returns false if there is no room.
    pub(super) fn note(&mut self, fact: &Fact, steps: &mut usize) -> bool {
        let count = match fact {
            Fact::Order(_, ranks) => ranks.len(),
            Fact::Next(..) | Fact::Above(..) => 1,
        };
        *steps = steps.saturating_add(count);
        if *steps > MAX_STEPS {
            return false;
        }
        match fact {
            Fact::Order(channel, ranks) => {
                let next = self.next.entry(*channel).or_default();
                let behind = ranks.iter().cycle().skip(1);
                next.extend(ranks.iter().copied().zip(behind.copied()));
            }
            Fact::Next(channel, [before, rank, behind]) => {
                let next = self.next.entry(*channel).or_default();
                next.extend([(*before, *rank), (*rank, *behind)]);
            }
            Fact::Above(channel, rank, above) => {
                self.above.entry(*channel).or_default().insert(*rank, *above);
            }
        }
        true
    }

    /// The rings that close over all their ranks, of three or more, by channel: the order from the lowest rank on.
    pub(super) fn rings(&self) -> BTreeMap<u32, Vec<u32>> {
        let closed = self.next.iter().filter_map(|(channel, next)| {
            let first = *next.keys().next()?;
            let mut order = vec![first];
            let mut seen = BTreeSet::from([first]);
            let mut rank = *next.get(&first)?;
            while rank != first {
                if !seen.insert(rank) {
                    return None;
                }
                order.push(rank);
                rank = *next.get(&rank)?;
            }
            (order.len() == next.len() && order.len() > 1).then_some((*channel, order))
        });
        closed.collect()
    }

    /// The trees of which all ranks are known, by channel: each rank and the one above it.
    pub(super) fn trees(&self, ranks: Option<u32>) -> BTreeMap<u32, BTreeMap<u32, Option<u32>>> {
        let whole = self.above.iter().filter(|(_, above)| {
            let roots = above.values().filter(|above| above.is_none()).count();
            let all = ranks.is_none_or(|ranks| above.len() == ranks as usize);
            all && roots == 1
                && above.len() > 1
                && above.values().flatten().all(|rank| above.contains_key(rank))
        });
        whole.map(|(channel, above)| (*channel, above.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(lines: &[&str]) -> Shapes {
        let mut shapes = Shapes::default();
        let mut steps = 0;
        for line in lines {
            for fact in facts(line).unwrap() {
                assert!(shapes.note(&fact, &mut steps));
            }
        }
        shapes
    }

    #[test]
    fn rings_are_put_together_from_their_ranks() {
        // Each rank of three prints its neighbours (NCCL 2.2x, three hosts).
        let found = shapes(&[
            "Ring 00 : 2 -> 0 -> 1",
            "Ring 00 : 0 -> 1 -> 2",
            "Ring 01 : 1 -> 0 -> 2",
        ]);
        assert_eq!(found.rings().get(&0), Some(&vec![0, 1, 2]));
        assert_eq!(found.rings().get(&1), None, "two steps of three are known");
        let whole = shapes(&["Channel 00/08 :    0   3   1   2"]);
        assert_eq!(whole.rings()[&0], [0, 3, 1, 2]);
        // RCCL names the communicator behind it.
        let rccl = shapes(&[
            "Ring 0 : 1 -> 0 -> 1 comm 0x55 nRanks 02 busId c1000",
            "Ring 0 : 0 -> 1 -> 0 comm 0x56",
        ]);
        assert_eq!(rccl.rings()[&0], [0, 1]);
    }

    #[test]
    fn trees_have_one_root() {
        let found = shapes(&[
            "Trees [0] 1/2/-1->0->-1 [1] -1/-1/-1->0->1",
            "Trees [0] -1/-1/-1->1->0 [1] 0/2/-1->1->-1",
            "Trees [0] -1/-1/-1->2->0 [1] -1/-1/-1->2->1",
        ]);
        let trees = found.trees(Some(3));
        assert_eq!(trees[&0], BTreeMap::from([(0, None), (1, Some(0)), (2, Some(0))]));
        assert_eq!(trees[&1][&1], None);
        assert!(found.trees(Some(4)).is_empty(), "one rank has said nothing");
        // To 2.8 a second form follows.
        let old = facts("Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1").unwrap();
        assert_eq!(old, [Fact::Above(0, 0, None)]);
    }

    #[test]
    fn other_texts_have_no_shape() {
        for text in [
            "Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0",
            "Ring a : 1",
            "Ring 0 : 1 -> 2",
            "Channel 00 :",
            "",
        ] {
            assert_eq!(facts(text), None, "{text}");
        }
        assert_eq!(facts("Trees [a] x [1"), Some(Vec::new()));
    }
}
