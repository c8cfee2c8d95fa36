//! Convolutions: sums of products in which one factor, or the result, is accessed in windows.

use super::Lower;
use super::field::varied;
use super::text::{Convolution, Value};
use super::view::{Loop, strides};
use crate::error::XlaError;
use typed_dims_kernels::trace::saved::{SavedField, SavedOperand, SavedPart, SavedPlace};

/// The two loops of a window along one axis.
struct Window {
    /// The loop over the positions of the window.
    position: usize,
    /// The loop within the window.
    tap: usize,
    axis: usize,
}

/// The loops of a convolution, by their roles.
struct Roles {
    windows: Vec<Window>,
    /// Loops of the image and the result.
    batch: Vec<usize>,
    /// Loops of the image, the kernel and the result.
    groups: Vec<usize>,
    /// Loops of the image and the kernel that are summed over.
    features: Vec<usize>,
    /// Loops of the kernel and the result.
    outputs: Vec<usize>,
}

impl Roles {
    /// The roles of the loops of an image and a kernel. `None` if a loop of only one of them is
    /// summed over.
    fn of(windows: Vec<Window>, image: &[usize], kernel: &[usize], reduced: &[usize]) -> Option<Self> {
        let is_plain = |axis: &usize| !windows.iter().any(|own| own.position == *axis || own.tap == *axis);
        let plain = image.iter().copied().filter(is_plain);
        let (shared, batch): (Vec<usize>, Vec<usize>) = plain.partition(|axis| kernel.contains(axis));
        let outputs: Vec<usize> =
            kernel.iter().copied().filter(is_plain).filter(|axis| !shared.contains(axis)).collect();
        let (features, groups): (Vec<usize>, Vec<usize>) =
            shared.into_iter().partition(|axis| reduced.contains(axis));
        let is_sum = batch.iter().chain(&outputs).any(|axis| reduced.contains(axis));
        (!is_sum).then_some(Roles { windows, batch, groups, features, outputs })
    }

    /// A convolution with the groups of these roles, but without windows, which the caller adds.
    fn convolution(&self, sizes: &[usize]) -> Convolution {
        let groups = volume(sizes, &self.groups);
        Convolution { strides: vec![], padding: vec![], lhs_dilation: vec![], rhs_dilation: vec![], groups }
    }

    /// The loops of the result that are not in windows.
    fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        self.batch.iter().chain(&self.groups).chain(&self.outputs).copied()
    }

    /// The sizes of an image or a result: batch, features of all groups, spatial sizes.
    fn shape(
        &self,
        sizes: &[usize],
        features: &[usize],
        spatial: impl IntoIterator<Item = usize>,
    ) -> Vec<usize> {
        let mut shape =
            vec![volume(sizes, &self.batch), volume(sizes, &self.groups) * volume(sizes, features)];
        shape.extend(spatial);
        shape
    }
}

fn volume(sizes: &[usize], axes: &[usize]) -> usize {
    axes.iter().map(|&axis| sizes[axis]).product()
}

impl Lower<'_> {
    /// A convolution, if one factor is read in windows. The kernel is the other factor, which
    /// varies along one loop of each window.
    pub(super) fn convolution(
        &mut self,
        field: &SavedField,
        [left, right]: [&Vec<u32>; 2],
        kept: &[usize],
        reduced: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        for (image, kernel) in [(left, right), (right, left)] {
            let Some(operand) = self.plain(field, image).cloned() else { continue };
            let value = self.values[operand.value.expect("the operand is a value")].clone();
            let loops = varied(field, image[0]);
            let mut of_kernel: Vec<usize> = kernel.iter().flat_map(|&own| varied(field, own)).collect();
            of_kernel.sort_unstable();
            of_kernel.dedup();
            let fits = |position: usize, tap: usize| {
                let is_out = kept.contains(&position) && !of_kernel.contains(&position);
                is_out && reduced.contains(&tap) && of_kernel.contains(&tap)
            };
            let found = windows(&operand.place, &value.shape, &field.sizes, &loops, &fits);
            let Some(roles) = found.and_then(|found| Roles::of(found, &loops, &of_kernel, reduced)) else {
                continue;
            };
            if let Some(found) = self.convolved(field, (&operand, &value), kernel, &roles, kept)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn convolved(
        &mut self,
        field: &SavedField,
        (operand, value): (&SavedOperand, &Value),
        kernel: &[u32],
        roles: &Roles,
        kept: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        let (sizes, place, steps) = (&field.sizes, &operand.place, strides(&value.shape));
        let plain = roles.batch.iter().chain(&roles.groups).chain(&roles.features);
        let mut loops: Vec<Loop> =
            plain.map(|&axis| Loop { size: sizes[axis], stride: place.strides[axis] }).collect();
        let mut how = roles.convolution(sizes);
        let mut reach = Vec::new();
        for own in &roles.windows {
            let step = steps[own.axis] as isize;
            let [by_position, by_tap] = [own.position, own.tap].map(|axis| place.strides[axis] / step);
            if by_position <= 0 || by_tap <= 0 {
                return Ok(None);
            }
            let (by_position, by_tap) = (by_position as usize, by_tap as usize);
            let size = by_position * (sizes[own.position] - 1) + by_tap * (sizes[own.tap] - 1) + 1;
            loops.push(Loop { size, stride: step });
            reach.push(size);
            how.strides.push(by_position);
            how.rhs_dilation.push(by_tap);
            how.lhs_dilation.push(1);
            how.padding.push((0, 0));
        }
        let image = self.body.view(value, place.offset, &loops);
        let image = self.body.reshape(&image, &roles.shape(sizes, &roles.features, reach));
        let image = self.body.loaded(&image);
        let kernel = self.kernel(field, kernel, roles)?;
        let positions = || roles.windows.iter().map(|own| own.position);
        let shape = roles.shape(sizes, &roles.outputs, positions().map(|axis| sizes[axis]));
        let found = self.body.convolution([&image, &kernel], &how, &shape);
        let loops: Vec<usize> = roles.kept().chain(positions()).collect();
        let shape: Vec<usize> = loops.iter().map(|&axis| sizes[axis]).collect();
        let found = self.body.reshape(&found, &shape);
        let order: Vec<usize> =
            kept.iter().filter_map(|axis| loops.iter().position(|own| own == axis)).collect();
        Ok((order.len() == loops.len()).then(|| self.body.transpose(&found, &order)))
    }

    /// The kernel, with axes for output features, input features and taps.
    fn kernel(&mut self, field: &SavedField, of: &[u32], roles: &Roles) -> Result<Value, XlaError> {
        let plain = roles.groups.iter().chain(&roles.outputs).chain(&roles.features).copied();
        let loops: Vec<usize> = plain.chain(roles.windows.iter().map(|own| own.tap)).collect();
        let kernel = self.half_factor(field, of, &loops)?.value;
        let size = |axes: &[usize]| volume(&field.sizes, axes);
        let mut shape = vec![size(&roles.groups) * size(&roles.outputs), size(&roles.features)];
        shape.extend(roles.windows.iter().map(|own| field.sizes[own.tap]));
        Ok(self.body.loaded(&self.body.reshape(&kernel, &shape)))
    }

    /// A product that is added into windows of the result: the transpose of a convolution.
    pub(super) fn transposed_convolution(
        &mut self,
        part: &SavedPart,
        kept: &[usize],
        reduced: &[usize],
        count: usize,
        shape: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        let SavedPart { field, place } = part;
        let Some((factors, scale)) = self.factors(field) else { return Ok(None) };
        let [a, b] = &factors[..] else { return Ok(None) };
        for (image, kernel) in [(a, b), (b, a)] {
            let (loops, of_kernel) = (varied(field, image[0]), varied(field, kernel[0]));
            let fits = |position: usize, tap: usize| {
                let is_image = loops.contains(&position) && !of_kernel.contains(&position);
                is_image && of_kernel.contains(&tap) && !loops.contains(&tap)
            };
            let found = windows(place, shape, &field.sizes, kept, &fits);
            let Some(roles) = found.and_then(|found| Roles::of(found, &loops, &of_kernel, reduced)) else {
                continue;
            };
            let is_whole = roles.kept().count() + 2 * roles.windows.len() == kept.len();
            let forwards = roles.windows.iter().all(|own| {
                let step = strides(shape)[own.axis] as isize;
                place.strides[own.position] >= step && place.strides[own.tap] >= step
            });
            if is_whole && forwards {
                let (found, offset, loops) = self.convolved_back(part, [image, kernel], &roles, shape)?;
                let found = self.counted(&self.scaled(&found, scale), count);
                return Ok(Some(self.body.placed(&found, offset, &loops, shape)));
            }
        }
        Ok(None)
    }

    /// The elements of a transposed convolution, with their offset and loops in the result.
    fn convolved_back(
        &mut self,
        SavedPart { field, place }: &SavedPart,
        [image, kernel]: [&Vec<u32>; 2],
        roles: &Roles,
        shape: &[usize],
    ) -> Result<(Value, isize, Vec<Loop>), XlaError> {
        let (sizes, steps) = (&field.sizes, strides(shape));
        let mut how = roles.convolution(sizes);
        let mut offset = place.offset;
        for own in &roles.windows {
            let (step, size) = (steps[own.axis] as isize, shape[own.axis] as i64);
            let [by_position, by_tap] =
                [own.position, own.tap].map(|axis| (place.strides[axis] / step) as i64);
            let start = place.offset / step % size as isize;
            offset -= start * step;
            let reach = by_tap * (sizes[own.tap] as i64 - 1);
            let dilated = (sizes[own.position] as i64 - 1) * by_position + 1;
            let low = reach + start as i64;
            how.padding.push((low, size - dilated - low + reach));
            how.strides.push(1);
            how.lhs_dilation.push(by_position as usize);
            how.rhs_dilation.push(by_tap as usize);
        }
        let positions = || roles.windows.iter().map(|own| own.position);
        let plain = roles.batch.iter().chain(&roles.groups).chain(&roles.features).copied();
        let loops: Vec<usize> = plain.chain(positions()).collect();
        let image = self.half_factor(field, image, &loops)?.value;
        let image_shape = roles.shape(sizes, &roles.features, positions().map(|axis| sizes[axis]));
        let image = self.body.loaded(&self.body.reshape(&image, &image_shape));
        let kernel = self.kernel(field, kernel, roles)?;
        let axes: Vec<usize> = (2..kernel.rank()).collect();
        let kernel = self.body.reverse(&kernel, &axes);
        let whole = || roles.windows.iter().map(|own| own.axis);
        let out = roles.shape(sizes, &roles.outputs, whole().map(|axis| shape[axis]));
        let found = self.body.convolution([&image, &kernel], &how, &out);
        let mut loops: Vec<Loop> =
            roles.kept().map(|axis| Loop { size: sizes[axis], stride: place.strides[axis] }).collect();
        loops.extend(whole().map(|axis| Loop { size: shape[axis], stride: steps[axis] as isize }));
        let own: Vec<usize> = loops.iter().map(|own| own.size).collect();
        Ok((self.body.reshape(&found, &own), offset, loops))
    }
}

/// The windows of a place: pairs of loops along one axis. `fits` checks whether loops can be the
/// positions and the taps of a window. `None` if there is no window, if the loops may leave an
/// axis, or if several loops along an axis are not a window.
fn windows(
    place: &SavedPlace,
    shape: &[usize],
    sizes: &[usize],
    loops: &[usize],
    fits: &dyn Fn(usize, usize) -> bool,
) -> Option<Vec<Window>> {
    let steps = strides(shape);
    let mut of_axes: Vec<Vec<usize>> = vec![Vec::new(); shape.len()];
    for &own in loops {
        let stride = place.strides[own].unsigned_abs();
        if stride == 0 || sizes[own] == 1 {
            continue;
        }
        let axis = (0..shape.len())
            .find(|&axis| shape[axis] > 1 && steps[axis] <= stride && stride.is_multiple_of(steps[axis]))?;
        of_axes[axis].push(own);
    }
    let mut found = Vec::new();
    for (axis, own) in of_axes.iter().enumerate() {
        let reach: usize =
            own.iter().map(|&own| (sizes[own] - 1) * place.strides[own].unsigned_abs() / steps[axis]).sum();
        let start = place.offset.unsigned_abs() / steps[axis] % shape[axis].max(1);
        if place.offset < 0 || start + reach >= shape[axis].max(1) && !own.is_empty() {
            return None;
        }
        match own[..] {
            [] | [_] => {}
            [a, b] => {
                // If the inner loop ends before the outer one steps, the two loops only split the
                // axis.
                let (inner, outer) =
                    if place.strides[a].abs() <= place.strides[b].abs() { (a, b) } else { (b, a) };
                let inner_reach = (sizes[inner] - 1) * place.strides[inner].unsigned_abs();
                if inner_reach < place.strides[outer].unsigned_abs() {
                    return None;
                }
                let (position, tap) = if fits(a, b) { (a, b) } else { (b, a) };
                if !fits(position, tap) {
                    return None;
                }
                found.push(Window { position, tap, axis });
            }
            _ => return None,
        }
    }
    (!found.is_empty()).then_some(found)
}
