//! The room between points that bound a line from above and points that bound it from below.

/// A point: a time and a difference of two stamps, both in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Lines that run below all points above and above all points below. Only the corners of the two hulls matter.
#[derive(Clone, Debug, Default)]
pub(super) struct Corridor {
    above: CorridorBound,
    below: CorridorBound,
}

#[derive(Clone, Debug, Default)]
struct CorridorBound {
    points: Vec<Point>,
    hull: Vec<Point>,
}

/// Steps of a search by thirds: (2/3)^100 is 10^-18.
const THIRDS: usize = 100;
/// Steps of a search by halves.
const HALVES: usize = 60;
/// Widths that differ by less, in nanoseconds, are one: a search ends beside its goal.
const ROUNDING: f64 = 1e-6;

impl CorridorBound {
    /// Sorts the points and keeps the corners of the hull on the side of the line: `sign` is 1 for the lower one, -1 for
    /// the upper one.
    fn settle(&mut self, sign: f64) {
        self.points.sort_by(|a, b| {
            (a.x, a.y * sign)
                .partial_cmp(&(b.x, b.y * sign))
                .unwrap_or(core::cmp::Ordering::Equal)
        });
        self.wrap(sign);
    }

    /// The hull of sorted points (Andrew's monotone chain).
    fn wrap(&mut self, sign: f64) {
        self.hull.clear();
        for point in &self.points {
            while let [.., a, b] = self.hull[..] {
                let turn = (b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x);
                if turn * sign > 0.0 {
                    break;
                }
                self.hull.pop();
            }
            // The first of several points at one time counts.
            if self.hull.last().is_none_or(|last| last.x < point.x) {
                self.hull.push(*point);
            }
        }
    }

    fn drop(&mut self, point: Point, sign: f64) {
        if let Some(at) = self.points.iter().position(|known| *known == point) {
            self.points.remove(at);
        }
        self.wrap(sign);
    }
}

impl Corridor {
    /// Adds points that lie above every line, and such that lie below.
    pub(super) fn bound(&mut self, above: &[Point], below: &[Point]) {
        self.above.points.extend_from_slice(above);
        self.below.points.extend_from_slice(below);
    }

    /// To be called after points were added.
    pub(super) fn settle(&mut self) {
        self.above.settle(1.0);
        self.below.settle(-1.0);
    }

    /// There are no points.
    pub(super) fn is_empty(&self) -> bool {
        self.above.points.is_empty() && self.below.points.is_empty()
    }

    /// There are points on one side alone.
    pub(super) fn is_one_sided(&self) -> bool {
        self.above.points.is_empty() || self.below.points.is_empty()
    }

    /// How high at `x` a line of this slope can be; infinite without points above.
    pub(super) fn ceiling(&self, slope: f64, x: f64) -> f64 {
        let heights = self
            .above
            .hull
            .iter()
            .map(|point| point.y + slope * (x - point.x));
        heights.fold(f64::INFINITY, f64::min)
    }

    /// How low at `x` a line of this slope can be.
    pub(super) fn floor(&self, slope: f64, x: f64) -> f64 {
        let heights = self
            .below
            .hull
            .iter()
            .map(|point| point.y + slope * (x - point.x));
        heights.fold(f64::NEG_INFINITY, f64::max)
    }

    /// How wide the corridor of this slope is; negative where no line of this slope fits.
    pub(super) fn width(&self, slope: f64) -> f64 {
        self.ceiling(slope, 0.0) - self.floor(slope, 0.0)
    }

    /// The slope, `most` up or down at the most, with which the corridor is widest.
    pub(super) fn widest(&self, most: f64) -> f64 {
        // The least of falling lines less the greatest of some is concave.
        highest(-most, most, |slope| self.width(slope))
    }

    /// The slope of the clocks' drift, `most` up or down at the most: the one nearest to zero with which the two sides of the
    /// corridor, each where its points are in the middle, are apart as far as with the best one, but for a share of the
    /// corridor's width. That is Moon's objective, the least sum of all points' distances, for both sides.
    pub(super) fn slope(&self, most: f64, share: f64) -> f64 {
        let [above, below] = [&self.above.points, &self.below.points].map(|points| {
            let sum: f64 = points.iter().map(|point| point.x).sum();
            sum / float(points.len().max(1))
        });
        let apart = |slope: f64| self.ceiling(slope, above) - self.floor(slope, below);
        let best = highest(-most, most, apart);
        let best = if self.width(best) < 0.0 {
            self.widest(most)
        } else {
            best
        };
        let enough = apart(best) - share * self.width(best).abs();
        let room = self.width(best).min(0.0);
        last(best, 0.0, |slope| {
            apart(slope) >= enough && self.width(slope) >= room
        })
    }

    /// How far, between the first and the last point, a line that fits can be from the line of this slope and this height
    /// at zero. Where none fits, because points cross by the noise of stamps, how far its two sides are.
    pub(super) fn farthest(&self, slope: f64, height: f64, most: f64) -> f64 {
        let widest = self.widest(most);
        let [steepest, flattest] = if self.width(widest) < 0.0 {
            let is_as_wide = self.width(slope) + ROUNDING >= self.width(widest);
            [if is_as_wide { slope } else { widest }; 2]
        } else {
            [most, -most].map(|limit| last(widest, limit, |slope| self.width(slope) >= 0.0))
        };
        let all = || self.above.points.iter().chain(&self.below.points);
        let first = all().map(|point| point.x).fold(f64::INFINITY, f64::min);
        let last = all().map(|point| point.x).fold(f64::NEG_INFINITY, f64::max);
        [first, last]
            .into_iter()
            .map(|x| {
                let line = height + slope * x;
                let up = highest(flattest, steepest, |slope| self.ceiling(slope, x));
                let down = highest(flattest, steepest, |slope| -self.floor(slope, x));
                let (ceiling, floor) = (self.ceiling(up, x), self.floor(down, x));
                (ceiling - line)
                    .max(line - floor)
                    .max(floor - line)
                    .max(line - ceiling)
            })
            .fold(0.0, f64::max)
    }

    /// Leaves out up to `times` pairs of points, until the widest corridor is no narrower than `-tolerance`.
    pub(super) fn trim(&mut self, most: f64, tolerance: f64, times: usize) {
        for _ in 0..times {
            if self.width(self.widest(most)) >= -tolerance {
                return;
            }
            self.drop_tightest(most);
        }
    }

    /// Leaves out the two points that are closest to each other, or furthest over each other, at the best slope.
    fn drop_tightest(&mut self, most: f64) {
        let slope = self.widest(most);
        let height = |point: &&Point| point.y - slope * point.x;
        let above = self
            .above
            .hull
            .iter()
            .min_by(|a, b| height(a).total_cmp(&height(b)));
        let below = self
            .below
            .hull
            .iter()
            .max_by(|a, b| height(a).total_cmp(&height(b)));
        let (above, below) = (above.copied(), below.copied());
        if let (Some(above), Some(below)) = (above, below) {
            self.above.drop(above, 1.0);
            self.below.drop(below, -1.0);
        }
    }

    /// One-sided: how far half of the points are from the outermost one.
    pub(super) fn spread(&self) -> f64 {
        let sides = [(&self.above.points, 1.0), (&self.below.points, -1.0)];
        sides
            .into_iter()
            .filter_map(|(points, sign)| {
                let mut heights: Vec<f64> = points.iter().map(|point| point.y * sign).collect();
                heights.sort_by(f64::total_cmp);
                Some(heights.get(heights.len() / 2)? - heights.first()?)
            })
            .fold(0.0, f64::max)
    }
}

/// Going from `from`, where something holds, to `to`: the last place where it does.
fn last(from: f64, to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(to) {
        return to;
    }
    let (mut does, mut does_not) = (from, to);
    for _ in 0..HALVES {
        let between = f64::midpoint(does, does_not);
        if holds(between) {
            does = between;
        } else {
            does_not = between;
        }
    }
    does
}

/// Where, from `low` to `high`, a concave function is highest.
fn highest(low: f64, high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..THIRDS {
        let third = (high - low) / 3.0;
        let (a, b) = (low + third, high - third);
        if of(a) < of(b) {
            low = a;
        } else {
            high = b;
        }
    }
    f64::midpoint(low, high)
}

#[expect(clippy::cast_precision_loss, reason = "a count of points")]
fn float(count: usize) -> f64 {
    count as f64
}
