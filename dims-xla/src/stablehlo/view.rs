//! Strided places as operations of StableHLO: views of a value along loops, and the adjoint, which
//! adds elements along loops into zeros.
//!
//! Recorded steps read memory by an offset and a stride for each loop. If the strides match the
//! axes of the value, a view is a slice and a transpose. If they split or merge axes, a reshape
//! comes first. If loops overlap, as in windows, slices are concatenated. If that takes too many
//! slices, each position is looked up.

use super::text::{Body, Lookup, Value};
use typed_dims_kernels::program::code::DType;

/// A loop: its size, and the distance between consecutive positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loop {
    pub(super) size: usize,
    pub(super) stride: isize,
}

/// One of several overlapping loops becomes separate slices if it has at most this many positions.
const FEW: usize = 64;

/// A loop that runs forwards along an axis: the axis, the first position on the axis, and the step.
struct OnAxis {
    axis: usize,
    start: usize,
    step: usize,
}

/// The distance between consecutive positions along each axis.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// The loops along axes of a shape, if each has its own axis, and the position of the origin along
/// every axis.
fn on_axes(
    shape: &[usize],
    offset: usize,
    loops: &[(usize, usize, usize)],
) -> Option<(Vec<OnAxis>, Vec<usize>)> {
    let strides = strides(shape);
    let digits: Vec<usize> =
        (0..shape.len()).map(|axis| offset / strides[axis] % shape[axis].max(1)).collect();
    let mut used = vec![false; shape.len()];
    let mut found = Vec::new();
    for &(_, size, stride) in loops {
        let axis = (0..shape.len()).find(|&axis| {
            shape[axis] > 1 && strides[axis] <= stride && stride.is_multiple_of(strides[axis]) && !used[axis]
        })?;
        let step = stride / strides[axis];
        if digits[axis] + step * (size - 1) >= shape[axis] {
            return None;
        }
        used[axis] = true;
        found.push(OnAxis { axis, start: digits[axis], step });
    }
    Some((found, digits))
}

/// The loops of nonzero stride and several positions, all made to run forwards: number, size,
/// stride. Also the offset of their origin, and the loops that ran backwards.
fn forwards(offset: isize, loops: &[Loop]) -> (usize, Vec<(usize, usize, usize)>, Vec<usize>) {
    let (mut offset, mut found, mut reversed) = (offset, Vec::new(), Vec::new());
    for (number, &Loop { size, stride }) in loops.iter().enumerate() {
        if size == 1 || stride == 0 {
            continue;
        }
        if stride < 0 {
            offset += (size as isize - 1) * stride;
            reversed.push(number);
        }
        found.push((number, size, stride.unsigned_abs()));
    }
    (offset as usize, found, reversed)
}

/// Whether the inner loops reach as far as a step of an outer loop. The loops are sorted by
/// descending stride.
fn overlapping(loops: &[(usize, usize, usize)]) -> bool {
    let mut reach = 0;
    loops.iter().rev().any(|&(_, size, stride)| {
        let overlaps = stride <= reach;
        reach += (size - 1) * stride;
        overlaps
    })
}

impl Body {
    /// The elements of a value along loops: axis `n` of the result is loop `n`.
    pub(super) fn view(&self, value: &Value, offset: isize, loops: &[Loop]) -> Value {
        let shape: Vec<usize> = loops.iter().map(|own| own.size).collect();
        // An empty value can have stride 0 along all loops. Without this check, it would be read
        // like one repeated element.
        if value.len() == 0 || shape.contains(&0) {
            return self.zeros(value.dtype, &shape);
        }
        let (offset, mut varied, reversed) = forwards(offset, loops);
        varied.sort_by_key(|&(_, size, stride)| (std::cmp::Reverse(stride), std::cmp::Reverse(size)));
        let found = self.view_of(value, offset, &varied);
        // `found` has the axes of `varied`.
        let place = |number: &usize| varied.iter().position(|own| own.0 == *number).expect("the loop varies");
        let backwards: Vec<usize> = reversed.iter().map(place).collect();
        let found = self.reverse(&found, &backwards);
        let mut order: Vec<usize> = (0..varied.len()).collect();
        order.sort_by_key(|&at| varied[at].0);
        let found = self.transpose(&found, &order);
        let mut axes: Vec<usize> = varied.iter().map(|own| own.0).collect();
        axes.sort_unstable();
        self.broadcast(&found, &shape, &axes)
    }

    /// [`view`](Body::view) for loops that run forwards, sorted by descending stride.
    fn view_of(&self, value: &Value, offset: usize, loops: &[(usize, usize, usize)]) -> Value {
        if let Some((found, digits)) = on_axes(&value.shape, offset, loops) {
            let (mut from, mut to, mut step) = (digits.clone(), digits, vec![1; value.rank()]);
            to.iter_mut().for_each(|own| *own += 1);
            for (own, &(_, size, _)) in found.iter().zip(loops) {
                from[own.axis] = own.start;
                to[own.axis] = own.start + own.step * (size - 1) + 1;
                step[own.axis] = own.step;
            }
            let sliced = self.slice(value, &from, &to, &step);
            let mut kept: Vec<usize> = found.iter().map(|own| own.axis).collect();
            let order = kept.clone();
            kept.sort_unstable();
            let sizes: Vec<usize> = kept.iter().map(|&axis| sliced.shape[axis]).collect();
            let sliced = self.reshape(&sliced, &sizes);
            let order: Vec<usize> =
                order.iter().map(|axis| kept.binary_search(axis).expect("the axis is kept")).collect();
            return self.transpose(&sliced, &order);
        }
        if overlapping(loops) {
            // The loop with the fewest positions becomes a slice for each position.
            let few = (0..loops.len()).filter(|&at| loops[at].1 <= FEW).min_by_key(|&at| loops[at].1);
            if let Some(at) = few {
                let mut others = loops.to_vec();
                let (_, size, stride) = others.remove(at);
                let slices: Vec<Value> = (0..size)
                    .map(|position| {
                        let slice = self.view_of(value, offset + position * stride, &others);
                        let mut shape = slice.shape.to_vec();
                        shape.insert(at, 1);
                        self.reshape(&slice, &shape)
                    })
                    .collect();
                return self.concat(&slices, at);
            }
            let shape: Vec<usize> = loops.iter().map(|own| own.1).collect();
            let forwards: Vec<Loop> =
                loops.iter().map(|own| Loop { size: own.1, stride: own.2 as isize }).collect();
            let positions = self.positions(&shape, offset as isize, &forwards);
            return self.at_positions(value, &positions);
        }
        // Each loop runs over blocks that contain the inner loops. Splits the elements into blocks,
        // loop by loop.
        let mut found = self.reshape(value, &[value.len()]);
        let last: usize = loops.iter().map(|own| (own.1 - 1) * own.2).sum();
        found = self.slice_axis(&found, 0, offset, offset + last + 1);
        let zero = self.zeros(value.dtype, &[]);
        for &(_, size, stride) in loops {
            let axis = found.rank() - 1;
            let (len, wanted) = (found.shape[axis], size * stride);
            if len < wanted {
                found = self.pad_axis(&found, &zero, axis, 0, (wanted - len) as i64);
            } else {
                found = self.slice_axis(&found, axis, 0, wanted);
            }
            let mut shape = found.shape.to_vec();
            shape.splice(axis.., [size, stride]);
            found = self.reshape(&found, &shape);
        }
        let axis = found.rank() - 1;
        let found = self.slice_axis(&found, axis, 0, 1);
        let shape: Vec<usize> = found.shape[..axis].to_vec();
        self.reshape(&found, &shape)
    }

    /// The positions of elements along loops, as indices into contiguous memory.
    pub(super) fn positions(&self, shape: &[usize], offset: isize, loops: &[Loop]) -> Value {
        let all = |value: &Value| self.broadcast(value, shape, &[]);
        let mut sum = all(&self.int(offset as i64, DType::I64));
        for (axis, own) in loops.iter().enumerate() {
            if own.stride != 0 && own.size > 1 {
                let at = self.iota(DType::I64, shape, axis);
                let by = all(&self.int(own.stride as i64, DType::I64));
                sum = self.add(&sum, &self.mul(&at, &by));
            }
        }
        sum
    }

    /// The elements of a value at positions of its memory.
    pub(super) fn at_positions(&self, value: &Value, positions: &Value) -> Value {
        let flat = self.reshape(value, &[value.len()]);
        let mut shape = positions.shape.to_vec();
        shape.push(1);
        let indices = self.reshape(positions, &shape);
        self.gather(&flat, &indices, &Lookup { offset: &[], selected: &[0], batch: &[] })
    }

    /// Elements along loops, added into zeros of a shape. No loop with several positions has
    /// stride 0.
    pub(super) fn placed(&self, elements: &Value, offset: isize, loops: &[Loop], shape: &[usize]) -> Value {
        if elements.len() == 0 || shape.contains(&0) {
            return self.zeros(elements.dtype, shape);
        }
        let (offset, mut varied, reversed) = forwards(offset, loops);
        varied.sort_by_key(|&(_, size, stride)| (std::cmp::Reverse(stride), std::cmp::Reverse(size)));
        let elements = self.reverse(elements, &reversed);
        let sizes: Vec<usize> = {
            let mut numbers: Vec<(usize, usize)> = varied.iter().map(|own| (own.0, own.1)).collect();
            numbers.sort_unstable();
            numbers.iter().map(|own| own.1).collect()
        };
        let elements = self.reshape(&elements, &sizes);
        let mut numbers: Vec<usize> = varied.iter().map(|own| own.0).collect();
        numbers.sort_unstable();
        let order: Vec<usize> =
            varied.iter().map(|own| numbers.binary_search(&own.0).expect("the loop varies")).collect();
        self.placed_of(&self.transpose(&elements, &order), offset, &varied, shape)
    }

    fn placed_of(
        &self,
        elements: &Value,
        offset: usize,
        loops: &[(usize, usize, usize)],
        shape: &[usize],
    ) -> Value {
        let zero = self.zeros(elements.dtype, &[]);
        if let Some((found, digits)) = on_axes(shape, offset, loops) {
            let mut order: Vec<usize> = (0..found.len()).collect();
            order.sort_by_key(|&at| found[at].axis);
            let sorted = self.transpose(elements, &order);
            let (mut low, mut high, mut interior) =
                (vec![0; shape.len()], vec![0; shape.len()], vec![0; shape.len()]);
            let mut sizes = vec![1; shape.len()];
            for axis in 0..shape.len() {
                low[axis] = digits[axis] as i64;
                high[axis] = shape[axis] as i64 - digits[axis] as i64 - 1;
            }
            for (own, &(_, size, _)) in found.iter().zip(loops) {
                sizes[own.axis] = size;
                low[own.axis] = own.start as i64;
                interior[own.axis] = own.step - 1;
                high[own.axis] = (shape[own.axis] - own.start - own.step * (size - 1) - 1) as i64;
            }
            return self.pad(&self.reshape(&sorted, &sizes), &zero, &low, &high, &interior);
        }
        if overlapping(loops) {
            let few = (0..loops.len()).filter(|&at| loops[at].1 <= FEW).min_by_key(|&at| loops[at].1);
            if let Some(at) = few {
                let mut others = loops.to_vec();
                let (_, size, stride) = others.remove(at);
                let rest: Vec<usize> = others.iter().map(|own| own.1).collect();
                let slices = (0..size).map(|position| {
                    let slice = self.reshape(&self.slice_axis(elements, at, position, position + 1), &rest);
                    self.placed_of(&slice, offset + position * stride, &others, shape)
                });
                let by = if elements.dtype == DType::Bool { "or" } else { "add" };
                return slices.reduce(|a, b| self.binary(by, &a, &b)).expect("the loop has positions");
            }
            let forwards: Vec<Loop> =
                loops.iter().map(|own| Loop { size: own.1, stride: own.2 as isize }).collect();
            let positions = self.positions(&elements.shape, offset as isize, &forwards);
            return self.placed_at(elements, &positions, shape);
        }
        // From the innermost loop outwards: each element becomes a block as long as the stride.
        let mut found = elements.clone();
        for (axis, &(_, size, stride)) in loops.iter().enumerate().rev() {
            if found.rank() == axis + 1 {
                let mut shape = found.shape.to_vec();
                shape.push(1);
                found = self.reshape(&found, &shape);
            }
            let len = found.shape[axis + 1];
            found = self.pad_axis(&found, &zero, axis + 1, 0, stride as i64 - len as i64);
            let mut shape: Vec<usize> = found.shape[..axis].to_vec();
            shape.push(size * stride);
            found = self.reshape(&found, &shape);
        }
        let found = self.reshape(&found, &[found.len()]);
        let len: usize = shape.iter().product();
        let high = len as i64 - offset as i64 - found.len() as i64;
        let found = self.pad_axis(&found, &zero, 0, offset as i64, high);
        self.reshape(&found, shape)
    }

    /// Elements, added at these positions into zeros of a shape.
    pub(super) fn placed_at(&self, elements: &Value, positions: &Value, shape: &[usize]) -> Value {
        let len: usize = shape.iter().product();
        let zeros = self.zeros(elements.dtype, &[len]);
        let mut indices = positions.shape.to_vec();
        indices.push(1);
        let indices = self.reshape(positions, &indices);
        let found =
            self.scatter_add(&zeros, &indices, elements, &Lookup { offset: &[], selected: &[0], batch: &[] });
        self.reshape(&found, shape)
    }
}
