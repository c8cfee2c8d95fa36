//! What is left of a set of dims once its types are gone: constants that the compiler folds away.

use crate::types::brand::DimInfo;

/// The most dims a tensor can have, those behind a `Rest` included.
pub const MAX_DIMS: usize = 32;

/// Identifies one dim of a set at run time.
#[derive(Clone, Copy, Debug)]
pub struct DimKey {
    /// Behind how many `Rest`s the dim lies. Two dims with one id at different depths are different dims: a function
    /// that calls itself under `Rest<B>` mints its dims anew each time.
    pub depth: u32,
    /// [`Brand::ID`](crate::Brand::ID).
    pub id: u64,
    /// [`Brand::NAME`](crate::Brand::NAME).
    pub name: &'static str,
    /// The static size, if there is one.
    pub fixed: Option<usize>,
    /// The name of its role, and of those that this one refines; none if it has no role, or if nobody asked a type for it.
    pub roles: &'static [&'static str],
}

impl DimKey {
    const BLANK: DimKey = DimKey { depth: 0, id: 0, name: "", fixed: None, roles: &[] };

    /// Whether both stand for the same dim of one set.
    #[inline]
    pub const fn same(&self, other: &DimKey) -> bool {
        self.id == other.id && self.depth == other.depth
    }

    /// The key of a dim that is named in the signature at hand.
    #[inline]
    pub const fn of(info: &DimInfo<'_>) -> DimKey {
        DimKey { depth: 0, id: info.id, name: info.name, fixed: info.fixed, roles: &[] }
    }
}

/// The keys of a set in its order.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    len: usize,
    keys: [DimKey; MAX_DIMS],
}

impl Keys {
    /// The keys of the empty set.
    pub(crate) const EMPTY: Keys = Keys { len: 0, keys: [DimKey::BLANK; MAX_DIMS] };

    /// These keys followed by `more`.
    pub(crate) const fn join(mut self, more: &Keys) -> Keys {
        let mut i = 0;
        while i < more.len {
            self = self.with(more.keys[i]);
            i += 1;
        }
        self
    }

    /// These keys seen from outside a `Rest` that holds them.
    pub(crate) const fn behind_rest(mut self) -> Keys {
        let mut i = 0;
        while i < self.len {
            self.keys[i].depth += 1;
            i += 1;
        }
        self
    }

    /// These keys, without the size of one dim.
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

    /// The keys of a set of one dim.
    pub(crate) const fn one(key: DimKey) -> Keys {
        Keys::EMPTY.with(key)
    }

    /// These keys, which are those of a set with so many axes.
    ///
    /// A brand is a user's type, made by `dims!`; one that was written by hand could have any keys. Plans find axes by their keys.
    ///
    /// # Panics
    ///
    /// If there is not one axis for each key, or if a key is there twice. (In a constant: rustc reports an error.)
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

    /// The one key of a dim that is named.
    ///
    /// # Panics
    ///
    /// If there is not one, or it is that of a dim behind a `Rest`.
    pub(crate) const fn only(&self) -> &DimKey {
        assert!(self.len == 1 && self.keys[0].depth == 0, "a dim has one key");
        &self.keys[0]
    }

    const fn with(mut self, key: DimKey) -> Keys {
        assert!(self.len < MAX_DIMS, "a tensor can have at most 32 dims");
        self.keys[self.len] = key;
        self.len += 1;
        self
    }

    /// The keys in the order of the set.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub const fn as_slice(&self) -> &[DimKey] {
        self.keys.split_at(self.len).0
    }

    /// Where each of these keys stands in `outer`.
    ///
    /// # Panics
    ///
    /// If a key is not in `outer`: the types would not have let that pass.
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

    /// Whether the keys are in the order of a set, that in which the dims were declared. (`dims!` gives each dim a number that grows with its key.)
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

    /// Where `key` stands, if it is there.
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
    use std::panic::catch_unwind;

    const fn key(id: u64) -> Keys {
        Keys::one(DimKey { id, ..DimKey::BLANK })
    }

    #[test]
    fn a_set_has_an_axis_for_each_key_and_no_key_twice() {
        let (a, b) = (key(1), key(2));
        let both = a.join(&b);
        assert_eq!(both.checked(2).as_slice().len(), 2);
        // A dim behind a `Rest` is another dim.
        assert_eq!(a.join(&both.behind_rest()).checked(3).as_slice().len(), 3);
        for (keys, axes, why) in [
            (a.join(&a), 2, "a set has each dim once"),
            (both.behind_rest().join(&b.behind_rest()), 3, "a set has each dim once"),
            (both, 1, "a dim has one axis"),
            (Keys::EMPTY, 1, "a dim has one axis"),
        ] {
            let refused = catch_unwind(|| keys.checked(axes)).expect_err("the set is none");
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
    fn a_dim_that_is_named_has_one_key() {
        assert_eq!(key(3).only().id, 3);
        for keys in [Keys::EMPTY, key(1).join(&key(2)), key(1).behind_rest()] {
            assert!(catch_unwind(|| keys.only().id).is_err());
        }
    }
}
