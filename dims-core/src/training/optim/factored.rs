//! Splits the axes of a parameter, in memory order, into blocks before, between and after the two
//! axes over which the second moment is factored.

use super::state_tensor::AxisNumbers;

/// The axes of a parameter in five blocks: 0 for the axes before both factored axes in memory, 1
/// for the largest axis, 2 for the axes between the factored axes, 3 for the second largest axis,
/// and 4 for the axes after both factored axes.
pub(super) struct FactoredBlocks {
    /// The numbers of the blocks, in memory order.
    pub(super) order: [usize; 5],
    /// The sizes of the blocks, in memory order.
    pub(super) sizes: [usize; 5],
    /// For each factored moment, its axes in memory order, as axis numbers of the moment.
    pub(super) moments: [AxisNumbers; 2],
}

impl FactoredBlocks {
    /// The blocks of a parameter whose axes have these `sizes` and are stored in this `order`.
    pub(super) fn new(order: &[usize], sizes: &[usize], [largest, second]: [usize; 2]) -> Self {
        let place = |axis| order.iter().position(|&own| own == axis).expect("the order has each axis");
        let (first, last) = (place(largest).min(place(second)), place(largest).max(place(second)));
        let (outer, between, inner) = (&order[..first], &order[first + 1..last], &order[last + 1..]);
        let volume = |axes: &[usize]| axes.iter().map(|&axis| sizes[axis]).product::<usize>();
        // The axes of the moment that keeps one factored axis and lacks the other, in memory order,
        // as axis numbers of the moment.
        let moment = |kept: usize, lacks: usize| {
            let mut axes: AxisNumbers = outer.iter().chain(between).chain(inner).copied().collect();
            let before = if lacks == largest { outer.len() + between.len() } else { outer.len() };
            axes.insert(before, kept);
            axes.iter().map(|&axis| axis - usize::from(axis > lacks)).collect()
        };
        FactoredBlocks {
            order: if place(largest) < place(second) { [0, 1, 2, 3, 4] } else { [0, 3, 2, 1, 4] },
            sizes: [volume(outer), sizes[order[first]], volume(between), sizes[order[last]], volume(inner)],
            moments: [moment(second, largest), moment(largest, second)],
        }
    }

    pub(super) fn size(&self, block: usize) -> usize {
        let at = self.order.iter().position(|&own| own == block).expect("there are five blocks");
        self.sizes[at]
    }
}
