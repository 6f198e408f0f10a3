//! The values of one column.

/// The values of one column, some of them absent. Absent values before the first present one take no room.
#[derive(Clone, Debug, PartialEq)]
pub struct Values<T> {
    leading_nulls: usize,
    present: Vec<T>,
    /// Empty, or for each of `present` whether it really is.
    valid: Vec<bool>,
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self {
            leading_nulls: 0,
            present: Vec::new(),
            valid: Vec::new(),
        }
    }
}

impl<T: Default> Values<T> {
    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if !self.valid.is_empty() {
            self.valid.push(true);
        }
        self.present.push(value);
    }

    /// Adds an absent value.
    #[inline]
    pub fn push_null(&mut self) {
        if self.present.is_empty() {
            self.leading_nulls += 1;
            return;
        }
        self.valid.resize(self.present.len(), true);
        self.valid.push(false);
        self.present.push(T::default());
    }

    /// Adds the values `of` rows that all have one: what is absent among the others is looked at once.
    #[inline]
    pub fn extend<R>(&mut self, rows: &[R], of: impl Fn(&R) -> T) {
        self.present.extend(rows.iter().map(of));
        if !self.valid.is_empty() {
            self.valid.resize(self.present.len(), true);
        }
    }

    /// Adds the values `of` rows; `has` says which of them have one.
    #[inline]
    pub fn extend_some<R>(&mut self, rows: &[R], has: impl Fn(&R) -> bool, of: impl Fn(&R) -> T) {
        let leading = if self.present.is_empty() {
            rows.iter().take_while(|row| !has(row)).count()
        } else {
            0
        };
        self.leading_nulls += leading;
        let rows = &rows[leading..];
        if !self.valid.is_empty() || !rows.iter().all(&has) {
            self.valid.resize(self.present.len(), true);
            self.valid.extend(rows.iter().map(has));
        }
        self.present.extend(rows.iter().map(of));
    }

    /// Adds `value` `times` times.
    #[inline]
    pub fn extend_with(&mut self, value: T, times: usize)
    where
        T: Clone,
    {
        self.present.resize(self.present.len() + times, value);
        if !self.valid.is_empty() {
            self.valid.resize(self.present.len(), true);
        }
    }

    /// Adds `times` absent values.
    pub fn extend_null(&mut self, times: usize)
    where
        T: Clone,
    {
        if self.present.is_empty() || times == 0 {
            self.leading_nulls += times;
            return;
        }
        self.valid.resize(self.present.len(), true);
        self.present.resize(self.present.len() + times, T::default());
        self.valid.resize(self.present.len(), false);
    }

    /// Moves the values of `other` behind its own.
    pub fn append(&mut self, other: &mut Self)
    where
        T: Clone,
    {
        self.extend_null(core::mem::take(&mut other.leading_nulls));
        if !self.valid.is_empty() || !other.valid.is_empty() {
            self.valid.resize(self.present.len(), true);
            other.valid.resize(other.present.len(), true);
            self.valid.append(&mut other.valid);
        }
        self.present.append(&mut other.present);
    }

    /// Adds the values of `other`, each as `store` makes it.
    pub fn extend_mapped<S>(&mut self, other: &Values<S>, store: impl Fn(&S) -> T)
    where
        T: Clone,
    {
        self.extend_null(other.leading_nulls);
        if !self.valid.is_empty() || !other.valid.is_empty() {
            self.valid.resize(self.present.len(), true);
            self.valid.extend_from_slice(&other.valid);
            self.valid.resize(self.present.len() + other.present.len(), true);
        }
        self.present.extend(other.present.iter().map(store));
    }

    /// Makes room for this many more values behind the absent ones before the first.
    pub fn reserve(&mut self, count: usize) {
        self.present.reserve(count);
    }

    /// Keeps the values of the rows for which `keep` holds.
    pub fn retain(&mut self, keep: &[bool]) {
        let leading = self.leading_nulls;
        let kept = |row: usize| keep.get(row).copied().unwrap_or_default();
        self.leading_nulls = (0..leading).filter(|row| kept(*row)).count();
        let mut row = leading..;
        self.present.retain(|_| row.next().is_some_and(kept));
        let mut row = leading..;
        self.valid.retain(|_| row.next().is_some_and(kept));
    }

    /// The value of row `row`, to be changed; `None` when it is absent or there is no such row.
    #[inline]
    pub fn at_mut(&mut self, row: usize) -> Option<&mut T> {
        let index = row.checked_sub(self.leading_nulls)?;
        if self.valid.get(index).is_some_and(|valid| !valid) {
            return None;
        }
        self.present.get_mut(index)
    }

    /// The value of row `row`, which is the default if it was absent; `None` when there is no such row.
    pub fn make_present(&mut self, row: usize) -> Option<&mut T>
    where
        T: Clone,
    {
        if row >= self.len() {
            return None;
        }
        if row < self.leading_nulls {
            // All of them at once: later changes find them in their places.
            let leading = core::mem::take(&mut self.leading_nulls);
            self.valid.resize(self.present.len(), true);
            self.valid.splice(0..0, core::iter::repeat_n(false, leading));
            self.present
                .splice(0..0, core::iter::repeat_n(T::default(), leading));
        }
        let index = row - self.leading_nulls;
        if let Some(valid) = self.valid.get_mut(index) {
            *valid = true;
        }
        self.present.get_mut(index)
    }

    /// Number of values, absent ones counted.
    pub fn len(&self) -> usize {
        self.leading_nulls + self.present.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of row `row`; `None` when it is absent or there is no such row.
    #[inline]
    pub fn at(&self, row: usize) -> Option<&T> {
        let index = row.checked_sub(self.leading_nulls)?;
        if self.valid.get(index).is_some_and(|valid| !valid) {
            return None;
        }
        self.present.get(index)
    }

    /// All values in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&T>> {
        (0..self.len()).map(|row| self.at(row))
    }

    /// The plain values, when none is absent: what can be stored without looking at each.
    pub fn without_nulls(&self) -> Option<&[T]> {
        (self.leading_nulls == 0 && self.valid.is_empty()).then_some(&self.present)
    }

    /// The values from a row on, with that row's number: before it all are absent, and what is absent behind it has the default.
    #[inline]
    pub fn or_default(&self) -> (usize, &[T]) {
        (self.leading_nulls, &self.present)
    }

    /// Which of the values from that row on are present; empty when all are.
    pub fn present(&self) -> &[bool] {
        &self.valid
    }

    /// Makes room for as many values as `other` has.
    pub fn reserve_like(&mut self, other: &Self) {
        self.present.reserve(other.present.len());
        self.valid.reserve(other.valid.len());
    }

    /// True if every value is absent.
    pub fn all_null(&self) -> bool {
        self.present.is_empty()
    }

    /// Empties it, keeping its room.
    pub fn clear(&mut self) {
        self.leading_nulls = 0;
        self.present.clear();
        self.valid.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Value;
    use super::*;

    #[test]
    fn plain_columns_stay_plain_when_they_are_joined() {
        let column = |from: u32| {
            let mut values = Values::default();
            values.push(from);
            values.push(from + 1);
            values
        };
        let mut all = column(1);
        all.append(&mut column(3));
        all.extend_null(0);
        assert_eq!(all.without_nulls(), Some([1, 2, 3, 4].as_slice()));
    }

    #[test]
    fn absent_values_anywhere() {
        let mut values = Values::<u32>::default();
        values.push_null();
        values.push(7);
        assert!(!values.all_null());
        values.push_null();
        values.push(9);
        assert_eq!(
            values.iter().collect::<Vec<_>>(),
            [None, Some(&7), None, Some(&9)]
        );
        assert_eq!(values.len(), 4);
        assert_eq!(values.at(4), None);
        assert!(values.without_nulls().is_none());
        values.clear();
        values.push(1);
        assert_eq!(values.without_nulls(), Some(&[1][..]));
    }

    #[test]
    fn rows_that_come_together_are_stored_as_one_by_one() {
        let (none, seven) = (None::<u32>, Some(7));
        let all = [none, none, seven, Some(8), none, seven, seven, none];
        for split in 0..=all.len() {
            let (first, second) = all.split_at(split);
            let (mut one_by_one, mut together) = (Values::default(), Values::default());
            for value in &all {
                value.store(&mut one_by_one);
            }
            Option::store_all(first, |value| value, &mut together);
            Option::store_all(second, |value| value, &mut together);
            assert_eq!(together, one_by_one, "{split}");
            // All of them present, behind those.
            9u32.store(&mut one_by_one);
            u32::store_all(&[9], |value| value, &mut together);
            assert_eq!(together, one_by_one, "{split}");
        }
    }

    #[test]
    fn columns_are_appended_changed_and_thinned_as_their_rows() {
        let (none, seven) = (None::<u32>, Some(7));
        let all = [none, none, seven, Some(8), none, seven, seven, none];
        let column = |rows: &[Option<u32>]| {
            let mut values = Values::default();
            for value in rows {
                value.store(&mut values);
            }
            values
        };
        let list = |values: &Values<u32>| values.iter().map(Option::<&u32>::copied).collect::<Vec<_>>();
        for split in 0..=all.len() {
            let (mut first, mut second) = (column(&all[..split]), column(&all[split..]));
            first.append(&mut second);
            assert_eq!(list(&first), all, "{split}");
            assert_eq!(second.len(), 0);
        }
        for row in 0..all.len() {
            let mut values = column(&all);
            assert_eq!(values.at_mut(row).copied(), all[row]);
            *values.make_present(row).unwrap() += 1;
            let mut expected = all;
            expected[row] = Some(all[row].unwrap_or(0) + 1);
            assert_eq!(list(&values), expected, "{row}");
            let keep: Vec<bool> = (0..all.len()).map(|at| at % 2 == row % 2).collect();
            values.retain(&keep);
            let kept: Vec<Option<u32>> = expected.into_iter().skip(row % 2).step_by(2).collect();
            assert_eq!(list(&values), kept, "{row}");
        }
        assert_eq!(column(&all).make_present(all.len()), None);
        let mut values = column(&[none]);
        values.extend_null(1);
        values.extend_with(7, 2);
        values.extend_null(1);
        assert_eq!(list(&values), [none, none, seven, seven, none]);
    }

    #[test]
    fn a_column_of_nulls_stores_nothing() {
        let mut values = Values::<u64>::default();
        values.push_null();
        values.push_null();
        assert!(values.all_null());
        assert_eq!(values.len(), 2);
        assert_eq!(values.at(1), None);
    }
}
