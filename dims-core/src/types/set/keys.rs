//! The dims of a set as values, for use at run time.

use crate::error::{DimError, Origin, SizeFrom};
use crate::types::brand::DimInfo;
use crate::types::dim::UNSIZED;

/// The maximum number of dims of a tensor, including those behind a `Rest`.
pub const MAX_DIMS: usize = 32;

/// Identifies one dim of a set at run time.
#[derive(Clone, Copy, Debug)]
pub struct DimKey {
    /// The number of `Rest`s that the dim is behind. Two dims with the same id at different depths
    /// are different dims: a function that calls itself under `Rest<B>` makes new dims each time.
    pub depth: u32,
    /// [`Brand::ID`](crate::types::brand::Brand::ID).
    pub id: u64,
    /// [`Brand::NAME`](crate::types::brand::Brand::NAME).
    pub name: &'static str,
    /// The static size, if there is one.
    pub fixed: Option<usize>,
    /// The names of the dim's role and of the roles that this role refines. Empty if the dim has no
    /// role or the key was not made from a type.
    pub roles: &'static [&'static str],
}

impl DimKey {
    const BLANK: DimKey = DimKey { depth: 0, id: 0, name: "", fixed: None, roles: &[] };

    /// A name that two of the dims share.
    #[cfg(any(feature = "serde", feature = "safetensors", feature = "npy"))]
    pub(crate) fn repeated_name<'k>(keys: impl Iterator<Item = &'k DimKey> + Clone) -> Option<&'static str> {
        let is_second =
            |&(at, key): &(usize, &DimKey)| keys.clone().take(at).any(|other| other.name == key.name);
        keys.clone().enumerate().find(is_second).map(|(_, key)| key.name)
    }

    /// The bits of [`id`](DimKey::id) that count the dim's primes. Ids from `dims!` have only lower
    /// bits. Ids of loop variables also have bit 63.
    const PRIMES: u64 = 0xff << 48;

    /// The key of the dim's prime, with the given name.
    ///
    /// # Panics
    ///
    /// If the dim already has 255 primes. In a constant, this is a compile error.
    pub(crate) const fn primed(self, name: &'static str) -> DimKey {
        assert!(self.id & Self::PRIMES != Self::PRIMES, "a dim can have at most 255 primes");
        DimKey { id: self.id + (1 << 48), name, ..self }
    }

    /// Whether both are the same dim up to primes, so that they have the same size.
    pub(crate) const fn is_kin(&self, other: &DimKey) -> bool {
        (self.id ^ other.id) & !Self::PRIMES == 0 && self.depth == other.depth
    }

    /// Whether both identify the same dim of a set.
    #[inline]
    pub const fn same(&self, other: &DimKey) -> bool {
        self.id == other.id && self.depth == other.depth
    }

    /// The key of a dim that is named, not behind a `Rest`.
    #[inline]
    pub const fn of(info: &DimInfo<'_>) -> DimKey {
        DimKey { depth: 0, id: info.id, name: info.name, fixed: info.fixed, roles: &[] }
    }
}

/// The keys of a set, in the order of the set.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    len: usize,
    keys: [DimKey; MAX_DIMS],
    /// Whether any dim is a prime.
    has_primes: bool,
}

impl Keys {
    /// The keys of the empty set.
    pub(crate) const EMPTY: Keys = Keys { len: 0, keys: [DimKey::BLANK; MAX_DIMS], has_primes: false };

    /// These keys followed by `more`.
    pub(crate) const fn join(mut self, more: &Keys) -> Keys {
        let mut i = 0;
        while i < more.len {
            self = self.with(more.keys[i]);
            i += 1;
        }
        self
    }

    /// These keys as the dims of a `Rest`.
    pub(crate) const fn behind_rest(mut self) -> Keys {
        let mut i = 0;
        while i < self.len {
            self.keys[i].depth += 1;
            i += 1;
        }
        self
    }

    /// These keys without the static size of one dim.
    pub(crate) const fn resized(mut self, key: &DimKey) -> Keys {
        let mut i = 0;
        while i < self.len {
            if self.keys[i].same(key) {
                self.keys[i].fixed = None;
            }
            i += 1;
        }
        self
    }

    /// The keys of a one-dim set.
    pub(crate) const fn one(key: DimKey) -> Keys {
        Keys::EMPTY.with(key)
    }

    /// Returns these keys, after checking that a set with `axes` axes can have them.
    ///
    /// Plans find axes by keys, and a brand that a user writes without `dims!` can have any keys.
    ///
    /// # Panics
    ///
    /// If there is not one axis for each key, or a key is repeated. In a constant, this is a
    /// compile error.
    pub(crate) const fn checked(self, axes: usize) -> Keys {
        assert!(self.len == axes, "a dim has one axis");
        let mut i = 0;
        while i < self.len {
            let mut j = 0;
            while j < i {
                assert!(!self.keys[i].same(&self.keys[j]), "a set has each dim once");
                j += 1;
            }
            i += 1;
        }
        self
    }

    /// The only key.
    ///
    /// # Panics
    ///
    /// If there is not exactly one key, or its dim is behind a `Rest`.
    pub(crate) const fn only(&self) -> &DimKey {
        assert!(self.len == 1 && self.keys[0].depth == 0, "a dim has one key");
        &self.keys[0]
    }

    const fn with(mut self, key: DimKey) -> Keys {
        assert!(self.len < MAX_DIMS, "a tensor can have at most 32 dims");
        self.keys[self.len] = key;
        self.len += 1;
        self.has_primes |= key.id & DimKey::PRIMES != 0;
        self
    }

    /// The keys in the order of the set.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub const fn as_slice(&self) -> &[DimKey] {
        self.keys.split_at(self.len).0
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) const fn has_primes(&self) -> bool {
        self.has_primes
    }

    /// The positions of the dim at `at` and of the dims that differ from it only in primes. These
    /// dims must have the same size.
    pub(crate) fn kin_of(&self, at: usize) -> impl Iterator<Item = usize> {
        let keys = self.as_slice();
        (0..keys.len()).filter(move |&other| keys[other].is_kin(&keys[at]))
    }

    /// Checks that dims and their primes have the same size. `known` returns the size of the dim at
    /// a position and where it came from.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn check_primes(&self, known: impl Fn(usize) -> (usize, Origin)) -> Result<(), DimError> {
        if self.has_primes { self.compare_primes(&known) } else { Ok(()) }
    }

    // Not generic, so that it is compiled in this crate.
    #[inline(never)]
    fn compare_primes(&self, known: &dyn Fn(usize) -> (usize, Origin)) -> Result<(), DimError> {
        let measured = |at: usize| {
            let (size, origin) = known(at);
            SizeFrom { dim: self.keys[at].name, size, origin }
        };
        for at in 0..self.len {
            let sized = self.kin_of(at).map(measured).find(|kin| kin.size != UNSIZED);
            let own = measured(at);
            if let Some(first) = sized.filter(|first| own.size != UNSIZED && first.size != own.size) {
                return Err(DimError::two_sizes(first, own));
            }
        }
        Ok(())
    }

    /// The position of each of these keys in `outer`.
    ///
    /// # Panics
    ///
    /// If a key is not in `outer`, which the types rule out.
    pub const fn positions_in(&self, outer: &Keys) -> [usize; MAX_DIMS] {
        let mut map = [0; MAX_DIMS];
        let mut i = 0;
        while i < self.len {
            map[i] = match outer.position(&self.keys[i]) {
                Some(at) => at,
                None => panic!("a dim of an operand is not among the dims of the result"),
            };
            i += 1;
        }
        map
    }

    /// Whether these are the same keys in the same order.
    pub(crate) const fn is_same(&self, other: &Keys) -> bool {
        let mut same = self.len == other.len;
        let mut i = 0;
        while same && i < self.len {
            same = self.keys[i].same(&other.keys[i]);
            i += 1;
        }
        same
    }

    /// Whether all keys of `others` are among these.
    pub(crate) const fn has(&self, others: &Keys) -> bool {
        let mut i = 0;
        while i < others.len && self.position(&others.keys[i]).is_some() {
            i += 1;
        }
        i == others.len
    }

    /// Whether the keys are in the order of a set. `dims!` gives each dim an id that grows with its
    /// key; dims behind a `Rest` come last.
    #[cfg(any(feature = "safetensors", test))]
    pub(crate) const fn is_sorted(&self) -> bool {
        let mut i = 1;
        while i < self.len {
            let (before, key) = (&self.keys[i - 1], &self.keys[i]);
            if before.depth > key.depth || before.depth == key.depth && before.id >= key.id {
                return false;
            }
            i += 1;
        }
        true
    }

    /// The position of `key`, if present.
    #[cfg_attr(not(debug_assertions), inline)]
    pub const fn position(&self, key: &DimKey) -> Option<usize> {
        let mut i = 0;
        while i < self.len {
            if self.keys[i].same(key) {
                return Some(i);
            }
            i += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use std::panic::catch_unwind;

    const fn key(id: u64) -> Keys {
        Keys::one(DimKey { id, ..DimKey::BLANK })
    }

    #[test]
    fn a_set_has_an_axis_for_each_key_and_no_key_twice() {
        let (a, b) = (key(1), key(2));
        let both = a.join(&b);
        assert_eq!(both.checked(2).as_slice().len(), 2);
        // A dim behind a `Rest` is a different dim.
        assert_eq!(a.join(&both.behind_rest()).checked(3).as_slice().len(), 3);
        for (keys, axes, why) in [
            (a.join(&a), 2, "a set has each dim once"),
            (both.behind_rest().join(&b.behind_rest()), 3, "a set has each dim once"),
            (both, 1, "a dim has one axis"),
            (Keys::EMPTY, 1, "a dim has one axis"),
        ] {
            let refused = catch_unwind(|| keys.checked(axes)).expect_err("the keys are not a set");
            assert_eq!(refused.downcast_ref::<&str>(), Some(&why));
        }
    }

    #[test]
    fn a_set_is_in_the_order_of_its_keys() {
        let (a, b) = (key(1), key(2));
        assert!(a.join(&b).is_sorted() && b.join(&a.behind_rest()).is_sorted() && Keys::EMPTY.is_sorted());
        for keys in [b.join(&a), a.join(&a), a.behind_rest().join(&b)] {
            assert!(!keys.is_sorted());
        }
    }

    #[test]
    fn dims_and_their_primes_have_one_size() {
        let (a, b) = (key(1), key(2));
        let primed = |keys: &Keys| Keys::one(keys.only().primed("'"));
        let (a1, a2) = (primed(&a), primed(&primed(&a)));
        assert!(!a.join(&b).has_primes() && a.join(&a1).has_primes());
        assert!(a.join(&b).join(&a1).join(&primed(&b)).join(&a2).is_sorted());
        let all = a.join(&b).join(&a1).join(&a2).join(&a1.behind_rest());
        assert_eq!(all.kin_of(3).collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(all.kin_of(4).collect::<Vec<_>>(), [4]);
        let check = |sizes: [usize; 5]| all.check_primes(|at| (sizes[at], None)).is_ok();
        assert!(check([3, 4, 3, 3, 5]) && check([3, 4, UNSIZED, 3, 5]) && check([UNSIZED; 5]));
        assert!(!check([3, 3, 4, 3, 3]) && !check([UNSIZED, 4, 3, 4, 3]));
        let last = (0..255).fold(a, |keys, _| primed(&keys));
        assert!(catch_unwind(|| primed(&last)).is_err());
    }

    #[test]
    fn a_dim_that_is_named_has_one_key() {
        assert_eq!(key(3).only().id, 3);
        for keys in [Keys::EMPTY, key(1).join(&key(2)), key(1).behind_rest()] {
            assert!(catch_unwind(|| keys.only().id).is_err());
        }
    }
}
