//! Timelines of fixed size: cells that double their width when time outgrows them, for the whole run and for each
//! flow. Rows come in time order. What a cell looks like is left to `draw`.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use roce_model::cast::float;
use roce_model::{FlowId, TapId};

/// Cells of a flow's strip: one bit of a `u64` each.
const CELLS: usize = 64;
/// Cells of the whole run's strip.
const WIDE: usize = 512;
/// Flows that get a strip: the first ones seen. 18 MB at most.
const FLOWS: usize = 65_536;

/// Columns of a strip over time.
#[derive(Clone, Copy, Debug, Default)]
struct Grid {
    origin: u64,
    /// Width of a cell; 0 before the first row.
    width: u64,
    /// End of the last bin, after the origin.
    end: u64,
}

impl Grid {
    /// The cell of a bin, once the grid is as wide as it needs to be; `fold` is called for each doubling.
    fn cell(&mut self, time: u64, bin: u64, cells: usize, mut fold: impl FnMut()) -> usize {
        if self.width == 0 {
            *self = Self {
                origin: time,
                width: bin.max(1),
                end: 0,
            };
        }
        let offset = time.saturating_sub(self.origin);
        self.end = self.end.max(offset.saturating_add(bin));
        loop {
            let cell = usize::try_from(offset / self.width).unwrap_or(usize::MAX);
            if cell < cells {
                return cell;
            }
            self.width = self.width.saturating_mul(2);
            fold();
        }
    }
}

/// One column of a drawn strip.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Column {
    /// Bytes of application data.
    pub(super) volume: f64,
    /// Data packets.
    pub(super) data: f64,
    /// Number of the packets with CE.
    pub(super) ce: f64,
    /// Retransmitted or missing packets.
    pub(super) trouble: f64,
    /// True if there was any CE.
    pub(super) has_ce: bool,
    /// True if anything was retransmitted or missing.
    pub(super) has_trouble: bool,
}

/// Amounts that a row of the timeline adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    pub(super) volume: u64,
    pub(super) data: u32,
    pub(super) ce: u32,
    pub(super) trouble: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct WideCell {
    volume: u64,
    data: u64,
    ce: u64,
    trouble: u64,
}

/// The timeline of the whole run.
#[derive(Debug)]
pub(super) struct WholeStrip {
    grid: Grid,
    cells: Box<[WideCell]>,
    /// The bin of the last row and its cell: rows of one bin come together.
    last: Option<(u64, usize)>,
}

impl Default for WholeStrip {
    fn default() -> Self {
        Self {
            grid: Grid::default(),
            cells: vec![WideCell::default(); WIDE].into(),
            last: None,
        }
    }
}

impl WholeStrip {
    #[inline]
    pub(super) fn add(&mut self, time: u64, bin: u64, activity: Activity) {
        let index = match self.last {
            Some((last, index)) if last == time => index,
            _ => {
                let cells = &mut self.cells;
                let index = self.grid.cell(time, bin, WIDE, || fold(cells));
                self.last = Some((time, index));
                index
            }
        };
        if let Some(cell) = self.cells.get_mut(index) {
            cell.volume += activity.volume;
            cell.data += u64::from(activity.data);
            cell.ce += u64::from(activity.ce);
            cell.trouble += u64::from(activity.trouble);
        }
    }

    /// Time from the first bin's begin to the last one's end.
    pub(super) fn length(&self) -> u64 {
        self.grid.end
    }

    /// Redrawn in `columns` columns of equal time.
    pub(super) fn columns(&self, columns: usize) -> Vec<Column> {
        let mut drawn = vec![Column::default(); columns];
        spread(
            &self.grid,
            self.grid.end,
            self.cells.len(),
            columns,
            |cell, column, share| {
                let (Some(cell), Some(column)) = (self.cells.get(cell), drawn.get_mut(column)) else {
                    return;
                };
                column.volume += share * float(cell.volume);
                column.data += share * float(cell.data);
                column.ce += share * float(cell.ce);
                column.trouble += share * float(cell.trouble);
                column.has_ce |= cell.ce > 0;
                column.has_trouble |= cell.trouble > 0;
            },
        );
        drawn
    }
}

fn fold(cells: &mut [WideCell]) {
    for index in 0..cells.len() {
        let pair = |offset| cells.get(2 * index + offset).copied().unwrap_or_default();
        let (left, right) = (pair(0), pair(1));
        cells[index] = WideCell {
            volume: left.volume + right.volume,
            data: left.data + right.data,
            ce: left.ce + right.ce,
            trouble: left.trouble + right.trouble,
        };
    }
}

/// The strip of a flow: 272 bytes.
#[derive(Debug)]
struct Strip {
    /// Bytes of application data; a strip shows eight levels, so that single precision is plenty.
    volume: [f32; CELLS],
    ce: u64,
    trouble: u64,
}

/// The strips of the flows, all with the same cells.
#[derive(Debug, Default)]
pub(super) struct FlowStrips {
    grid: Grid,
    index: HashMap<(FlowId, TapId), u32, RandomState>,
    /// The flows of the strips.
    keys: Vec<(FlowId, TapId)>,
    strips: Vec<Strip>,
    last: Option<(u64, usize)>,
    /// The strip of the last row. Flows come in much the same order bin after bin.
    previous: usize,
    /// True if there was a flow without room.
    full: bool,
}

impl FlowStrips {
    #[inline]
    pub(super) fn add(&mut self, flow: FlowId, tap: TapId, time: u64, bin: u64, activity: Activity) {
        let cell = match self.last {
            Some((last, cell)) if last == time => cell,
            _ => {
                let strips = &mut self.strips;
                let cell = self
                    .grid
                    .cell(time, bin, CELLS, || strips.iter_mut().for_each(Strip::fold));
                self.last = Some((time, cell));
                cell
            }
        };
        let Some(strip) = self
            .find((flow, tap))
            .and_then(|index| self.strips.get_mut(index))
        else {
            return;
        };
        #[expect(clippy::cast_precision_loss, reason = "a strip shows eight levels")]
        if let Some(volume) = strip.volume.get_mut(cell) {
            *volume += activity.volume as f32;
        }
        // Most rows have neither, and leave the cache lines of these alone.
        if activity.ce > 0 {
            strip.ce |= 1 << cell;
        }
        if activity.trouble > 0 {
            strip.trouble |= 1 << cell;
        }
    }

    #[inline]
    fn find(&mut self, key: (FlowId, TapId)) -> Option<usize> {
        let next = self.previous + 1;
        for guess in [next, next + 1, 0] {
            if self.keys.get(guess) == Some(&key) {
                self.previous = guess;
                return Some(guess);
            }
        }
        if let Some(index) = self.index.get(&key) {
            self.previous = *index as usize;
            return Some(self.previous);
        }
        if self.keys.len() >= FLOWS {
            self.full = true;
            return None;
        }
        let index = self.keys.len();
        self.index.insert(key, u32::try_from(index).ok()?);
        self.keys.push(key);
        self.strips.push(Strip {
            volume: [0.0; CELLS],
            ce: 0,
            trouble: 0,
        });
        self.previous = index;
        Some(index)
    }

    /// Number of flows, when all of them had room.
    pub(super) fn flows(&self) -> Option<usize> {
        (!self.full).then_some(self.keys.len())
    }

    /// The strip of a flow in `columns` columns of equal time.
    pub(super) fn columns(&self, flow: FlowId, tap: TapId, columns: usize) -> Option<Vec<Column>> {
        let strip = self.strips.get(*self.index.get(&(flow, tap))? as usize)?;
        let mut drawn = vec![Column::default(); columns];
        spread(
            &self.grid,
            self.grid.end,
            CELLS,
            columns,
            |cell, column, share| {
                let (Some(volume), Some(column)) = (strip.volume.get(cell), drawn.get_mut(column)) else {
                    return;
                };
                column.volume += share * f64::from(*volume);
                column.has_ce |= strip.ce >> cell & 1 == 1;
                column.has_trouble |= strip.trouble >> cell & 1 == 1;
            },
        );
        Some(drawn)
    }
}

impl Strip {
    fn fold(&mut self) {
        for index in 0..CELLS {
            let value = |offset| self.volume.get(2 * index + offset).copied().unwrap_or_default();
            self.volume[index] = value(0) + value(1);
        }
        self.ce = fold_bits(self.ce);
        self.trouble = fold_bits(self.trouble);
    }
}

/// Each pair of bits becomes one, set when either was.
const fn fold_bits(bits: u64) -> u64 {
    let mut x = (bits | bits >> 1) & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}

/// For each cell and each column that share some time: how much of the cell's time lies in the column.
fn spread(grid: &Grid, length: u64, cells: usize, columns: usize, mut give: impl FnMut(usize, usize, f64)) {
    if grid.width == 0 || length == 0 || columns == 0 {
        return;
    }
    let (width, length, columns) = (u128::from(grid.width), u128::from(length), columns as u128);
    for cell in 0..cells {
        // In units of 1/columns ns, so that both borders are whole numbers. The last cell ends with time.
        let begin = (cell as u128 * width).min(length) * columns;
        let end = ((cell as u128 + 1) * width).min(length) * columns;
        let mut column = begin / length;
        let mut from = begin;
        while from < end {
            let to = end.min((column + 1) * length);
            #[expect(clippy::cast_precision_loss, reason = "a share of a cell")]
            let share = (to - from) as f64 / (end - begin) as f64;
            give(cell, usize::try_from(column).unwrap_or(usize::MAX), share);
            from = to;
            column += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(volume: u64, ce: u32, trouble: u32) -> Activity {
        Activity {
            volume,
            data: 1,
            ce,
            trouble,
        }
    }

    #[test]
    fn pairs_of_bits_become_one() {
        assert_eq!(fold_bits(0), 0);
        assert_eq!(fold_bits(u64::MAX), 0xffff_ffff);
        assert_eq!(fold_bits(1 << 63), 1 << 31);
        assert_eq!(fold_bits(0b1001), 0b11);
        assert_eq!(fold_bits(0b1100), 0b10);
    }

    #[test]
    fn nothing_is_lost_when_time_outgrows_the_cells() {
        let mut whole = WholeStrip::default();
        let mut flows = FlowStrips::default();
        let (flow, tap) = (FlowId(1), TapId(0));
        for bin in 0..10_000_u64 {
            let now = activity(10, u32::from(bin == 5_000), u32::from(bin == 9_999));
            whole.add(7 + bin * 1_000, 1_000, now);
            flows.add(flow, tap, 7 + bin * 1_000, 1_000, now);
        }
        assert_eq!(whole.length(), 10_000_000);
        for drawn in [whole.columns(10), flows.columns(flow, tap, 10).unwrap()] {
            let volume: f64 = drawn.iter().map(|column| column.volume).sum();
            assert!((volume - 100_000.0).abs() < 1e-6, "{volume}");
            assert!(
                drawn
                    .iter()
                    .all(|column| (column.volume - 10_000.0).abs() < 300.0),
                "{drawn:?}"
            );
            assert!(drawn[9].has_trouble && !drawn[8].has_trouble);
            assert!(drawn[5].has_ce || drawn[4].has_ce);
        }
    }

    #[test]
    fn a_short_run_fills_all_columns() {
        let mut whole = WholeStrip::default();
        whole.add(0, 10, activity(90, 0, 0));
        whole.add(10, 10, activity(0, 0, 0));
        whole.add(20, 10, activity(30, 3, 0));
        let drawn = whole.columns(6);
        let volumes: Vec<f64> = drawn.iter().map(|column| column.volume).collect();
        assert_eq!(volumes, [45.0, 45.0, 0.0, 0.0, 15.0, 15.0]);
        assert_eq!(
            drawn.iter().map(|column| column.has_ce).collect::<Vec<_>>(),
            [false, false, false, false, true, true]
        );
    }

    #[test]
    fn flows_and_taps_are_apart_and_jumps_in_time_harmless() {
        let mut flows = FlowStrips::default();
        flows.add(FlowId(1), TapId(0), 1_000, 10, activity(1, 0, 0));
        flows.add(FlowId(1), TapId(1), 1_000, 10, activity(2, 0, 0));
        flows.add(FlowId(1), TapId(0), u64::MAX, u64::MAX, activity(4, 0, 0));
        flows.add(FlowId(1), TapId(0), 3, 10, activity(8, 0, 0));
        let sum = |tap| {
            flows
                .columns(FlowId(1), TapId(tap), 8)
                .unwrap()
                .iter()
                .map(|column| column.volume)
                .sum::<f64>()
        };
        assert!((sum(0) - 13.0).abs() < 1e-6);
        assert!((sum(1) - 2.0).abs() < 1e-6);
        assert_eq!(flows.flows(), Some(2));
        assert!(flows.columns(FlowId(2), TapId(0), 8).is_none());
    }

    #[test]
    fn flows_beyond_the_cap_have_no_strip() {
        let mut flows = FlowStrips::default();
        for flow in 0..=FLOWS as u64 {
            flows.add(FlowId(flow), TapId(0), 0, 1, activity(1, 0, 0));
        }
        assert_eq!(flows.flows(), None);
        assert!(flows.columns(FlowId(FLOWS as u64), TapId(0), 8).is_none());
        assert!(flows.columns(FlowId(0), TapId(0), 8).is_some());
    }
}
