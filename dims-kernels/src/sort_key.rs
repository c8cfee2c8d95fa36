//! Elements as integers in the same order, so that one routine sorts elements of many types.

use alloc::vec::Vec;

/// How to sort elements of a type: by integer keys, or by comparisons. Integers of 128 bits and
/// users' types have the default, [`COMPARED`](SortKey::COMPARED); users cannot construct another
/// value.
pub struct SortKey<T> {
    /// Returns the key: equal for equal elements, and greater for greater ones. All NaNs have the
    /// same key, the greatest.
    key: Option<fn(T) -> u64>,
    /// Whether keys have at most 32 bits.
    is_short: bool,
}

impl<T> SortKey<T> {
    /// Elements are compared with each other.
    pub const COMPARED: Self = SortKey { key: None, is_short: false };

    /// Whether there are keys.
    pub(crate) const fn has_keys(&self) -> bool {
        self.key.is_some()
    }

    /// A key of at most 32 bits.
    pub(crate) const fn short(key: fn(T) -> u64) -> Self {
        SortKey { key: Some(key), is_short: true }
    }

    /// A key of 64 bits.
    pub(crate) const fn long(key: fn(T) -> u64) -> Self {
        SortKey { key: Some(key), is_short: false }
    }
}

impl<T: Copy> SortKey<T> {
    /// Whether a key and a position on a line of `len` elements fit into 64 bits together.
    pub(crate) fn is_short_line(&self, len: usize) -> bool {
        self.is_short && u32::try_from(len).is_ok()
    }

    /// Makes the keys of a line.
    ///
    /// # Panics
    ///
    /// If there are no keys.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn line<'m>(&self, line: &[T], descending: bool, memory: &'m mut KeyMemory) -> KeyedLine<'m> {
        let key = self.key.expect("the type has keys");
        let keys = line.iter().map(|&element| key(element));
        if self.is_short_line(line.len()) {
            let flip = if descending { u64::from(u32::MAX) } else { 0 };
            memory.short.clear();
            memory.short.extend(keys.zip(0..).map(|(key, at): (u64, u64)| (key ^ flip) << 32 | at));
            KeyedLine::Short(&mut memory.short)
        } else {
            let flip = if descending { u64::MAX } else { 0 };
            memory.long.clear();
            memory.long.extend(keys.zip(0..).map(|(key, at): (u64, u128)| u128::from(key ^ flip) << 64 | at));
            KeyedLine::Long(&mut memory.long)
        }
    }
}

/// Memory for the keys of a line. It is reused for each line.
#[derive(Default)]
pub(crate) struct KeyMemory {
    /// For lines that are [short](SortKey::is_short_line).
    pub(crate) short: Vec<u64>,
    /// For all other lines.
    pub(crate) long: Vec<u128>,
}

/// The elements of a line as integers, with the key in the upper half and the position on the line
/// in the lower half. So equal elements are in the order of their positions.
pub(crate) enum KeyedLine<'m> {
    Short(&'m mut [u64]),
    Long(&'m mut [u128]),
}

/// Sorts the `count` least integers, and moves them to the front.
fn sort_first<P: Ord>(keys: &mut [P], count: usize) {
    if count < keys.len() {
        keys.select_nth_unstable(count);
    }
    keys[..count].sort_unstable();
}

/// The `at`th integer in order, and the one after it, if there is one.
fn in_order<P: Ord + Copy>(keys: &mut [P], at: usize) -> (P, Option<P>) {
    let (_, &mut own, above) = keys.select_nth_unstable(at);
    (own, above.iter().min().copied())
}

impl KeyedLine<'_> {
    /// Calls a function with the positions of the first `count` elements in order.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn each_first(mut self, count: usize, mut each: impl FnMut(usize)) {
        self.sort_first(count);
        match self {
            KeyedLine::Short(keys) => keys[..count].iter().for_each(|&key| each(key as u32 as usize)),
            KeyedLine::Long(keys) => keys[..count].iter().for_each(|&key| each(key as u64 as usize)),
        }
    }

    /// Not inlined, so that only this crate has code that sorts.
    #[inline(never)]
    fn sort_first(&mut self, count: usize) {
        match self {
            KeyedLine::Short(keys) => sort_first(keys, count),
            KeyedLine::Long(keys) => sort_first(keys, count),
        }
    }

    /// The position of the `at`th element in order, and the position of the next one, if there is
    /// one.
    #[inline(never)]
    pub(crate) fn neighbors(self, at: usize) -> (usize, Option<usize>) {
        match self {
            KeyedLine::Short(keys) => {
                let (own, next) = in_order(keys, at);
                (own as u32 as usize, next.map(|key| key as u32 as usize))
            }
            KeyedLine::Long(keys) => {
                let (own, next) = in_order(keys, at);
                (own as u64 as usize, next.map(|key| key as u64 as usize))
            }
        }
    }
}

/// The key of a signed integer of at most 32 bits.
pub(crate) const fn short_integer(value: i32) -> u64 {
    (value.cast_unsigned() ^ 1 << 31) as u64
}

/// The key of a signed integer of 64 bits.
pub(crate) const fn long_integer(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

/// The key of a float of at most 32 bits.
pub(crate) fn short_float(value: f32) -> u64 {
    if value.is_nan() {
        return u32::MAX.into();
    }
    // -0 and 0 are equal.
    let bits = (value + 0.0).to_bits();
    (if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }).into()
}

/// The key of a float of 64 bits.
pub(crate) fn long_float(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::KeyMemory;
    use crate::scalar::Ordered;
    use crate::step::sorting::ascending;
    use alloc::vec::Vec;
    use core::fmt::Debug;

    /// Sorts a line that has each value twice, and compares the positions with a stable sort's.
    fn check<T: Ordered + Debug>(values: &[T]) {
        let line = [values, values].concat();
        let mut memory = KeyMemory::default();
        let mut expected: Vec<usize> = (0..line.len()).collect();
        for descending in [false, true] {
            expected.sort_unstable();
            expected.sort_by(|&a, &b| {
                let order = ascending(&line[a], &line[b]);
                if descending { order.reverse() } else { order }
            });
            for count in [0, 1, values.len(), line.len()] {
                let mut found = Vec::new();
                T::SORT_KEY.line(&line, descending, &mut memory).each_first(count, |at| found.push(at));
                assert_eq!(found, expected[..count], "{line:?}");
            }
            for at in 0..line.len() {
                let found = T::SORT_KEY.line(&line, descending, &mut memory).neighbors(at);
                assert_eq!(found, (expected[at], expected.get(at + 1).copied()), "{line:?}");
            }
        }
    }

    macro_rules! integers {
        ($($t:ident)*) => {
            $(check(&[3, $t::MAX, 0, 1, $t::MIN, $t::MIN + 1, $t::MAX - 1, 0_u8.wrapping_sub(1) as $t]);)*
        };
    }

    macro_rules! floats {
        ($($t:ty),*) => {
            $(
                let least = <$t>::MIN_POSITIVE;
                let one = <$t>::from_bits(least.to_bits() + 1);
                let values = [
                    one, -least, <$t>::INFINITY, <$t>::NAN, least, -one, <$t>::MAX, <$t>::from_bits(1),
                    <$t>::NEG_INFINITY, least - least, -(least - least), -<$t>::NAN, <$t>::MIN,
                ];
                check(&values);
            )*
        };
    }

    #[test]
    fn keys_sort_like_comparisons() {
        integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
        floats!(f32, f64);
        #[cfg(feature = "half")]
        floats!(half::f16, half::bf16);
    }
}
