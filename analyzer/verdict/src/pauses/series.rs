//! Changes of one counter between its readings, in bounded memory.

/// Changes kept of one series; beyond it neighbours are merged.
pub(super) const MAX_WINDOWS: usize = 32;

/// A change between two readings, or a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Window {
    /// Time of the reading before, in ns.
    pub(in super::super) from: u64,
    /// Time of the reading.
    pub(in super::super) to: u64,
    /// The change.
    pub(in super::super) by: f64,
}

impl Window {
    pub(in super::super) fn overlaps(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to
    }

    pub(in super::super) fn length(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// The changes of one counter, in the order of time.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Series {
    pub(in super::super) windows: Vec<Window>,
    pub(in super::super) sum: f64,
    /// Times that the counter fell and did not wrap.
    pub(in super::super) resets: u64,
    /// The latest value: of gauges.
    pub(in super::super) latest: f64,
}

impl Series {
    /// Adds a change behind those that are there.
    pub(in super::super) fn add(&mut self, window: Window) {
        self.sum += window.by;
        if let Some(last) = self.windows.last_mut()
            && (last.by, window.by) == (0.0, 0.0)
            && last.to == window.from
        {
            last.to = window.to;
            return;
        }
        self.windows.push(window);
        if self.windows.len() > MAX_WINDOWS {
            let pairs = self.windows.chunks(2);
            self.windows = pairs.filter_map(whole).collect();
        }
    }

    /// Windows in which the counter rose.
    pub(in super::super) fn risen(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(|window| window.by > 0.0)
    }

    /// The change from `from` to `to`, each window's spread evenly over its time; and for how much of that time there are readings.
    pub(in super::super) fn within(&self, from: u64, to: u64) -> (f64, u64) {
        let (mut sum, mut covered) = (0.0, 0u64);
        for window in &self.windows {
            let common = window.to.min(to).saturating_sub(window.from.max(from));
            if common > 0 {
                sum += window.by * roce_model::value_of(common) / roce_model::value_of(window.length());
                covered = covered.saturating_add(common);
            }
        }
        (sum, covered)
    }
}

/// Neighbours as one window.
fn whole(windows: &[Window]) -> Option<Window> {
    let (first, last) = (windows.first()?, windows.last()?);
    Some(Window {
        from: first.from,
        to: last.to.max(first.to),
        by: windows.iter().map(|window| window.by).sum(),
    })
}

/// The union of windows in which something rose, sorted, overlapping ones as one.
pub(super) fn union(mut windows: Vec<Window>) -> Vec<Window> {
    windows.sort_by_key(|window| (window.from, window.to));
    let mut all: Vec<Window> = Vec::with_capacity(windows.len());
    for window in windows {
        match all.last_mut() {
            Some(last) if window.from < last.to => {
                last.to = last.to.max(window.to);
                last.by = last.by.max(window.by);
            }
            _ => all.push(window),
        }
    }
    all
}

/// True if any window of one list overlaps one of the other. Both are in the order of time.
pub(super) fn meet(one: &[Window], other: &[Window]) -> bool {
    let (mut at, mut of) = (0, 0);
    while let (Some(a), Some(b)) = (one.get(at), other.get(of)) {
        if a.overlaps(b) {
            return true;
        }
        if a.to <= b.to { at += 1 } else { of += 1 }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from: u64, to: u64, by: f64) -> Window {
        Window { from, to, by }
    }

    #[test]
    fn changes_keep_their_sum_and_their_bound() {
        let mut series = Series::default();
        for at in 0..1_000 {
            series.add(window(at, at + 1, 2.0));
        }
        assert!(series.windows.len() <= MAX_WINDOWS);
        assert_eq!(series.sum.to_bits(), 2_000.0f64.to_bits());
        // Half of the time has half of the change.
        let (sum, covered) = series.within(0, 500);
        assert!((sum - 1_000.0).abs() < 1e-6 && covered == 500, "{sum} {covered}");
    }

    #[test]
    fn windows_meet_where_they_overlap() {
        let one = [window(0, 10, 1.0), window(30, 40, 1.0)];
        assert!(!meet(&one, &[window(10, 30, 1.0)]), "the ends are not in them");
        assert!(meet(&one, &[window(12, 14, 1.0), window(39, 50, 1.0)]));
        assert!(!meet(&one, &[]));
        assert_eq!(
            union(vec![window(5, 8, 1.0), window(0, 6, 3.0), window(8, 9, 1.0)]),
            [window(0, 8, 3.0), window(8, 9, 1.0)]
        );
    }
}
