//! The oracle: a named array that computes each element separately, from the definition of each
//! operation.
//!
//! It shares no code with the library. Its dims are strings, its loops visit all indices, and it
//! has no strides, fusion, broadcasting tricks or wider accumulators.

#![allow(dead_code)] // each test file uses a part of it

pub mod input;
pub mod patterns;

use ndarray::{ArrayD, ArrayViewD};

/// The index of each dim: the loop variables of the definition.
pub type Place = Vec<(&'static str, usize)>;

/// The index of one dim.
pub fn index_of(at: &Place, name: &str) -> usize {
    at.iter().find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no dim {name}")).1
}

/// A named array, whose last dim varies fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference<T> {
    /// The dims with their sizes.
    pub dims: Vec<(&'static str, usize)>,
    /// The elements.
    pub data: Vec<T>,
}

/// All positions of some dims, the last dim fastest.
pub fn positions(dims: &[(&'static str, usize)]) -> Vec<Place> {
    let mut all = vec![Vec::new()];
    for &(name, size) in dims {
        let mut next = Vec::new();
        for at in &all {
            for index in 0..size {
                let mut at: Place = at.clone();
                at.push((name, index));
                next.push(at);
            }
        }
        all = next;
    }
    all
}

/// The dims of `a` and `b`, without duplicates.
pub fn union(a: &[(&'static str, usize)], b: &[(&'static str, usize)]) -> Vec<(&'static str, usize)> {
    let mut dims = a.to_vec();
    for &(name, size) in b {
        match dims.iter().find(|(own, _)| *own == name) {
            Some((_, own)) => assert_eq!(*own, size, "the sizes of {name} differ"),
            None => dims.push((name, size)),
        }
    }
    dims
}

impl<T: Clone> Reference<T> {
    /// The value of `f` at each position.
    pub fn build(dims: &[(&'static str, usize)], mut f: impl FnMut(&Place) -> T) -> Self {
        Reference { dims: dims.to_vec(), data: positions(dims).iter().map(&mut f).collect() }
    }

    /// Like `build`, but stops at the first error.
    pub fn try_build<E>(
        dims: &[(&'static str, usize)],
        f: impl FnMut(&Place) -> Result<T, E>,
    ) -> Result<Self, E> {
        let data = positions(dims).iter().map(f).collect::<Result<_, _>>()?;
        Ok(Reference { dims: dims.to_vec(), data })
    }

    /// An array of one value, without dims.
    pub fn scalar(value: T) -> Self {
        Reference { dims: Vec::new(), data: vec![value] }
    }

    /// `array[names[0], names[1], ..]`. A name for several axes takes the diagonal.
    pub fn bind(array: &ArrayViewD<'_, T>, names: &[&'static str]) -> Self {
        let mut dims: Vec<(&'static str, usize)> = Vec::new();
        for (&name, &size) in names.iter().zip(array.shape()) {
            if !dims.iter().any(|(own, _)| *own == name) {
                dims.push((name, size));
            }
        }
        Self::build(&dims, |at| {
            let index: Vec<usize> = names.iter().map(|name| index_of(at, name)).collect();
            array[&index[..]].clone()
        })
    }

    /// The element at a position, which may have extra dims.
    pub fn get(&self, at: &Place) -> T {
        let mut offset = 0;
        for &(name, size) in &self.dims {
            let index = index_of(at, name);
            assert!(index < size, "index {index} of {name}, whose size is {size}");
            offset = offset * size + index;
        }
        self.data[offset].clone()
    }

    /// The size of a dim.
    pub fn size(&self, name: &str) -> usize {
        index_of(&self.dims, name)
    }

    /// `f` of each element.
    pub fn map<U>(&self, f: impl FnMut(T) -> U) -> Reference<U> {
        Reference { dims: self.dims.clone(), data: self.data.iter().cloned().map(f).collect() }
    }

    /// `f` of the elements of both arrays, over the union of their dims.
    pub fn zip<U: Clone, V: Clone>(
        &self,
        other: &Reference<U>,
        mut f: impl FnMut(T, U) -> V,
    ) -> Reference<V> {
        Reference::build(&union(&self.dims, &other.dims), |at| f(self.get(at), other.get(at)))
    }

    /// `f` of the elements along some dims (the last one fastest), for each position of the others.
    pub fn reduce<U: Clone>(&self, names: &[&str], mut f: impl FnMut(Vec<T>) -> U) -> Reference<U> {
        let kept: Vec<_> = self.dims.iter().filter(|(name, _)| !names.contains(name)).copied().collect();
        let reduced: Vec<_> =
            names.iter().map(|name| *self.dims.iter().find(|(own, _)| own == name).unwrap()).collect();
        Reference::build(&kept, |at| {
            let line = positions(&reduced).into_iter().map(|inner| {
                let mut all = at.clone();
                all.extend(inner);
                self.get(&all)
            });
            f(line.collect())
        })
    }

    /// `f` of each line along a dim. `f` returns a line of the same length.
    pub fn along<U: Clone>(&self, name: &'static str, mut f: impl FnMut(Vec<T>) -> Vec<U>) -> Reference<U> {
        let lines = self.reduce(&[name], &mut f);
        Reference::build(&self.dims, |at| lines.get(at)[index_of(at, name)].clone())
    }

    /// The array with one axis for each group of dims.
    pub fn order(&self, groups: &[&[&'static str]]) -> ArrayD<T> {
        let flat: Vec<_> = groups.iter().flat_map(|group| group.iter()).map(|&n| (n, self.size(n))).collect();
        assert_eq!(flat.len(), self.dims.len(), "the groups do not contain each dim once");
        let shape: Vec<usize> =
            groups.iter().map(|group| group.iter().map(|name| self.size(name)).product()).collect();
        let data = positions(&flat).iter().map(|at| self.get(at)).collect();
        ArrayD::from_shape_vec(shape, data).expect("the groups cover all elements")
    }

    /// Renames the dim `old` to `new`.
    pub fn rename(&self, old: &str, new: &'static str) -> Self {
        let dims = self.dims.iter().map(|&(name, size)| (if name == old { new } else { name }, size));
        Reference { dims: dims.collect(), data: self.data.clone() }
    }

    /// The elements at `start..end` along a dim.
    pub fn slice(&self, name: &'static str, start: usize, end: usize) -> Self {
        let dims: Vec<_> = self
            .dims
            .iter()
            .map(|&(own, size)| (own, if own == name { end - start } else { size }))
            .collect();
        Self::build(&dims, |at| {
            self.get(&at.iter().map(|&(own, i)| (own, if own == name { i + start } else { i })).collect())
        })
    }

    /// The elements at one position along a dim.
    pub fn index(&self, name: &'static str, index: usize) -> Self {
        let dims: Vec<_> = self.dims.iter().filter(|(own, _)| *own != name).copied().collect();
        Self::build(&dims, |at| {
            let mut at = at.clone();
            at.push((name, index));
            self.get(&at)
        })
    }

    /// Splits a dim into several dims. The last one varies fastest.
    pub fn unflatten(&self, whole: &'static str, parts: &[(&'static str, usize)]) -> Self {
        let mut dims: Vec<_> = self.dims.iter().filter(|(own, _)| *own != whole).copied().collect();
        dims.extend(parts);
        Self::build(&dims, |at| {
            let index = parts.iter().fold(0, |index, (name, size)| index * size + index_of(at, name));
            let mut at = at.clone();
            at.push((whole, index));
            self.get(&at)
        })
    }

    /// Merges several dims into one. The last of `parts` varies fastest.
    pub fn flatten(&self, parts: &[&'static str], whole: &'static str) -> Self {
        let mut dims: Vec<_> = self.dims.iter().filter(|(own, _)| !parts.contains(own)).copied().collect();
        dims.push((whole, parts.iter().map(|name| self.size(name)).product()));
        Self::build(&dims, |at| {
            let mut rest = index_of(at, whole);
            let mut at = at.clone();
            at.retain(|(own, _)| *own != whole);
            for &name in parts.iter().rev() {
                at.push((name, rest % self.size(name)));
                rest /= self.size(name);
            }
            self.get(&at)
        })
    }

    /// Concatenates the parts along a dim that they have.
    pub fn concat(name: &'static str, parts: &[Self]) -> Self {
        let total = parts.iter().map(|part| part.size(name)).sum();
        let dims: Vec<_> =
            parts[0].dims.iter().map(|&(own, size)| (own, if own == name { total } else { size })).collect();
        Self::build(&dims, |at| {
            let mut index = index_of(at, name);
            for part in parts {
                if index < part.size(name) {
                    let at = at.iter().map(|&(own, i)| (own, if own == name { index } else { i })).collect();
                    return part.get(&at);
                }
                index -= part.size(name);
            }
            unreachable!("the sizes add up")
        })
    }

    /// Stacks the parts along a new dim.
    pub fn stack(name: &'static str, parts: &[Self]) -> Self {
        let mut dims = parts[0].dims.clone();
        dims.push((name, parts.len()));
        Self::build(&dims, |at| parts[index_of(at, name)].get(at))
    }
}

/// `if cond { a } else { b }`, over the union of all dims.
pub fn select<T: Clone>(cond: &Reference<bool>, a: &Reference<T>, b: &Reference<T>) -> Reference<T> {
    let dims = union(&union(&cond.dims, &a.dims), &b.dims);
    Reference::build(&dims, |at| if cond.get(at) { a.get(at) } else { b.get(at) })
}

/// The product of all factors, summed over some dims: the definition of a contraction.
pub fn contract<T: input::Sample>(factors: &[Reference<T>], summed: &[&str]) -> Reference<T> {
    let product = factors[1..]
        .iter()
        .fold(factors[0].clone(), |product, factor| product.zip(factor, |a, b| a.times(b)));
    product.reduce(summed, |line| line.into_iter().fold(T::ZERO_VALUE, |sum, x| sum.plus(x)))
}

/// The position of the first maximum (or minimum), or of the first NaN.
pub fn arg<T: PartialOrd + Copy>(line: &[T], greatest: bool) -> usize {
    let mut best = 0;
    for (at, &x) in line.iter().enumerate() {
        let old = line[best];
        let is_nan = |x: T| x.partial_cmp(&x).is_none();
        if is_nan(old) {
            return best;
        }
        if is_nan(x) || (greatest && x > old) || (!greatest && x < old) {
            best = at;
        }
    }
    best
}
