//! A list that is nearly always empty, in one word: what every answer looks at stays in one cache line.

/// A stack of what seldom comes.
#[derive(Clone, Debug)]
#[expect(clippy::box_collection, reason = "one word, where a vector takes three")]
pub(super) struct Seldom<T>(Option<Box<Vec<T>>>);

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Seldom<T> {
    /// True if there is nothing.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn push(&mut self, one: T) {
        self.0.get_or_insert_default().push(one);
    }

    /// The one that came last.
    pub(super) fn pop(&mut self) -> Option<T> {
        let all = self.0.as_mut()?;
        let last = all.pop();
        if all.is_empty() {
            self.0 = None;
        }
        last
    }
}
