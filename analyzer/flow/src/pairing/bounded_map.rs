//! A map with a limit, for facts that a hostile capture could have any number of. It forgets the oldest entry.

use core::hash::Hash;
use core::num::NonZeroUsize;

use lru::LruCache;

/// Maximum number of entries of one map: CM exchanges, known peers, connections that hosts reported.
pub(crate) const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("not zero");

/// A map that forgets the entry that was set longest ago. Lookups by `peek` do not make an entry newer.
pub(crate) type BoundedMap<K, V> = LruCache<K, V, foldhash::fast::RandomState>;

/// A map of [`MAX_KNOWN`] entries at most.
pub(crate) fn bounded_map<K: Eq + Hash, V>() -> BoundedMap<K, V> {
    LruCache::with_hasher(MAX_KNOWN, foldhash::fast::RandomState::default())
}
