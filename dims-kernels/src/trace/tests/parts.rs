//! Compares `out[place] += program(operands)` with slow loops: any strides, overlaps, tables, and
//! sizes including 0.

use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, DType, UnaryOpcode};
use crate::program::Register;
use crate::program::builder::Builder;
use crate::scalar::CastTo;
use crate::trace::windows::gathered;
use crate::trace::{Field, FieldOperand, FieldSource, Held, Node, Part, StridedPlace, Table, evaluate};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use proptest::prelude::*;

/// The positions of elements, as test data.
#[derive(Clone, Debug)]
struct Lying {
    strides: Vec<isize>,
    /// The loops along which a table varies, and the seed of its offsets.
    table: Option<(Vec<usize>, u64)>,
}

/// A function of three operands and a position.
#[derive(Clone, Copy, Debug)]
enum Formula {
    First,
    Product,
    Triple,
    Scaled,
    SquareTimes,
    Mixed,
    Position,
    Constant,
}

impl Formula {
    const ALL: [Formula; 8] = [
        Formula::First,
        Formula::Product,
        Formula::Triple,
        Formula::Scaled,
        Formula::SquareTimes,
        Formula::Mixed,
        Formula::Position,
        Formula::Constant,
    ];

    fn write(self, build: &mut Builder, dtype: DType) -> Register {
        let kind = dtype.kind();
        let [a, b, c] = [0, 1, 2].map(|number| build.load(number, dtype));
        match self {
            Formula::First => a,
            Formula::Product => build.binary(BinaryOpcode::Mul, a, b),
            Formula::Triple => {
                let product = build.binary(BinaryOpcode::Chain, b, c);
                build.binary(BinaryOpcode::Mul, a, product)
            }
            Formula::Scaled => {
                let (half, negative) = (build.float(0.5, kind), build.unary(UnaryOpcode::Neg, b));
                let scaled = build.binary(BinaryOpcode::Mul, half, a);
                build.binary(BinaryOpcode::Mul, scaled, negative)
            }
            Formula::SquareTimes => {
                let square = build.unary(UnaryOpcode::Square, a);
                build.binary(BinaryOpcode::Mul, square, b)
            }
            Formula::Mixed => {
                let product = build.binary(BinaryOpcode::Mul, b, c);
                let sum = build.binary(BinaryOpcode::Add, a, product);
                let on = build.binary(BinaryOpcode::Gt, b, c);
                build.select(on, sum, c)
            }
            Formula::Position => {
                let at = build.position(3);
                let at = build.cast(dtype, at);
                build.binary(BinaryOpcode::Mul, at, b)
            }
            Formula::Constant => build.float(2.0, kind),
        }
    }

    fn value(self, [a, b, c]: [f64; 3], position: isize) -> f64 {
        match self {
            Formula::First => a,
            Formula::Product => a * b,
            Formula::Triple => a * b * c,
            Formula::Scaled => 0.5 * a * -b,
            Formula::SquareTimes => a * a * b,
            Formula::Mixed if b > c => a + b * c,
            Formula::Mixed => c,
            Formula::Position => position as f64 * b,
            Formula::Constant => 2.0,
        }
    }
}

#[derive(Clone, Debug)]
struct Drawn {
    formula: Formula,
    sizes: Vec<usize>,
    operands: Vec<Lying>,
    place: Lying,
    seed: u64,
}

fn lying(loops: usize) -> impl Strategy<Value = Lying> {
    let stride = prop_oneof![3 => Just(0isize), 3 => Just(1isize), 4 => -4..=9isize];
    let table = proptest::option::weighted(
        0.3,
        (proptest::collection::vec(0..loops.max(1), 0..=loops), any::<u64>()),
    );
    (proptest::collection::vec(stride, loops), table).prop_map(move |(strides, table)| Lying {
        strides,
        table: table.map(|(mut order, seed)| {
            order.retain(|&axis| axis < loops);
            let mut own = Vec::new();
            order.into_iter().for_each(|axis| {
                if !own.contains(&axis) {
                    own.push(axis)
                }
            });
            (own, seed)
        }),
    })
}

/// Some of the loops, contiguous in a random order, as in most steps.
fn contiguous(sizes: Vec<usize>) -> impl Strategy<Value = Lying> {
    let all: Vec<usize> = (0..sizes.len()).collect();
    proptest::sample::subsequence(all.clone(), 0..=all.len()).prop_shuffle().prop_map(move |order| Lying {
        strides: StridedPlace::contiguous(&sizes, &order).strides.to_vec(),
        table: None,
    })
}

fn either(sizes: Vec<usize>) -> impl Strategy<Value = Lying> {
    prop_oneof![lying(sizes.len()), contiguous(sizes)]
}

fn drawn(size: core::ops::Range<usize>) -> impl Strategy<Value = Drawn> {
    proptest::collection::vec(prop_oneof![1 => Just(1usize), 6 => size], 0..4).prop_flat_map(|sizes| {
        let operands: Vec<_> = (0..4).map(|_| either(sizes.clone())).collect();
        (
            proptest::sample::select(&Formula::ALL[..]),
            Just(sizes.clone()),
            operands,
            either(sizes),
            any::<u64>(),
        )
            .prop_map(|(formula, sizes, operands, place, seed)| Drawn {
                formula,
                sizes,
                operands,
                place,
                seed,
            })
    })
}

fn positions(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![vec![]], |all, &size| {
        let more = |at: &Vec<usize>| (0..size).map(|x| [&at[..], &[x]].concat()).collect::<Vec<_>>();
        all.iter().flat_map(more).collect()
    })
}

impl Lying {
    /// The place, the index of the element at each position, and the number of elements that are
    /// needed.
    fn place(&self, sizes: &[usize]) -> (StridedPlace, Vec<usize>, usize) {
        let offsets = |order: &[usize], seed: u64| -> Vec<isize> {
            let len: usize = order.iter().map(|&axis| sizes[axis]).product();
            (0..len as u64)
                .map(|at| ((seed ^ at.wrapping_mul(0x9E37_79B9_7F4A_7C15)) >> 33) as isize % 11 - 3)
                .collect()
        };
        let table = self.table.as_ref().map(|(order, seed)| (order, offsets(order, *seed)));
        let along = |strides: &[isize], at: &[usize]| -> isize {
            at.iter().zip(strides).map(|(&at, &stride)| at as isize * stride).sum()
        };
        let at = |at: &Vec<usize>| {
            let moved = table.as_ref().map_or(0, |(order, offsets)| {
                offsets[order.iter().fold(0, |all, &axis| all * sizes[axis] + at[axis])]
            });
            along(&self.strides, at) + moved
        };
        let at: Vec<isize> = positions(sizes).iter().map(at).collect();
        // Room for the farthest offset of the loops plus that of a table (from -3 to 7), even if no
        // position has both.
        let reach =
            sizes.iter().zip(&self.strides).map(|(&size, &stride)| size.saturating_sub(1) as isize * stride);
        let least = reach.clone().filter(|&far| far < 0).sum::<isize>() - 3;
        let most = reach.filter(|&far| far > 0).sum::<isize>() + 7;
        let mut place = StridedPlace::strided(-least, self.strides.iter().copied());
        if self.table.is_none() && self.strides.iter().all(|&stride| stride >= 0) {
            place.offset = 0;
        }
        place.table = table.map(|(order, offsets)| Box::new(Table::new(offsets, sizes, order)));
        let start = place.offset;
        let len = if start == 0 {
            sizes
                .iter()
                .zip(&self.strides)
                .fold(1, |len, (&size, &stride)| len + size.saturating_sub(1) * stride as usize)
        } else {
            (most - least + 1) as usize
        };
        (place, at.into_iter().map(|at| (at + start) as usize).collect(), len)
    }
}

impl Drawn {
    /// The part with elements of type `T`, and the values that it adds, computed by slow loops.
    fn part<T>(&self, len: usize) -> (Part, Vec<(usize, f64)>)
    where
        f64: CastTo<T>,
        T: crate::scalar::Element + CastTo<f64>,
    {
        let dtype = DType::of::<T>().expect("each float type has a `DType`");
        let sizes = &self.sizes[..];
        let mut operands = Vec::new();
        let mut values: Vec<Vec<f64>> = Vec::new();
        for (number, own) in self.operands[..3].iter().enumerate() {
            let (place, at, len) = own.place(sizes);
            let data: Vec<T> = (0..len)
                .map(|at| {
                    let mixed = (self.seed ^ (number as u64) << 7)
                        .wrapping_add(at as u64)
                        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    CastTo::<T>::cast_to((mixed >> 44) as f64 / f64::from(1 << 19) - 1.0)
                })
                .collect();
            values.push(at.iter().map(|&at| data[at].cast_to()).collect());
            operands.push(FieldOperand { source: FieldSource::Memory(Buffer::from(data).held()), place });
        }
        let strides = self.operands[3].strides.clone();
        let counted: Vec<isize> = positions(sizes)
            .iter()
            .map(|at| 2 + at.iter().zip(&strides).map(|(&at, &stride)| at as isize * stride).sum::<isize>())
            .collect();
        operands
            .push(FieldOperand { source: FieldSource::Position, place: StridedPlace::strided(2, strides) });
        let mut build = Builder::new();
        let result = self.formula.write(&mut build, dtype);
        let field =
            Field { sizes: sizes.into(), program: Arc::new(build.finish(result)), operands, names: None };
        // Leaves out unused operands, as in recorded fields.
        let field = field.map([], |_, value, []| value);
        let (mut place, at, own) = self.place.place(sizes);
        let moved = (len - own).min(3) as isize * isize::from(place.offset != 0);
        place.offset += moved;
        let added = at.iter().enumerate().map(|(n, &at)| {
            (at + moved as usize, self.formula.value([0, 1, 2].map(|own| values[own][n]), counted[n]))
        });
        (Part { field, place }, added.collect())
    }

    fn len(&self) -> usize {
        self.place.place(&self.sizes).2
    }
}

fn check<T>(parts: &[Drawn], epsilon: f64) -> Result<(), TestCaseError>
where
    f64: CastTo<T>,
    T: crate::scalar::Element + CastTo<f64>,
{
    let len = parts.iter().map(Drawn::len).max().unwrap_or(5);
    let (parts, added): (Vec<Part>, Vec<_>) = parts.iter().map(|own| own.part::<T>(len)).unzip();
    let (mut expected, mut size) = (vec![0.0; len], vec![1.0; len]);
    for &(at, value) in added.iter().flatten() {
        expected[at] += value;
        size[at] += f64::abs(value);
    }
    let dtype = DType::of::<T>().expect("each float type has a `DType`");
    let found = evaluate(&parts, len, dtype, true).expect("there is memory");
    prop_assert!(found.node().is_none(), "the result is traced");
    let found = Buffer::<T>::of_held(&found).expect("the elements have the type `T`");
    prop_assert_eq!(found.len(), len);
    for at in 0..len {
        let value: f64 = found[at].cast_to();
        prop_assert!(
            (value - expected[at]).abs() <= epsilon * size[at],
            "{} instead of {} at {} of {}",
            value,
            expected[at],
            at,
            len
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_part_is_its_loops(part in drawn(0..6)) {
        check::<f64>(&[part], 1e-13)?;
    }

    #[test]
    fn parts_are_added(parts in proptest::collection::vec(drawn(0..4), 0..4)) {
        check::<f64>(&parts, 1e-13)?;
    }

    #[test]
    fn in_single_precision(parts in proptest::collection::vec(drawn(0..5), 1..3)) {
        check::<f32>(&parts, 1e-6)?;
    }
}

#[cfg(feature = "half")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Sums are accumulated in single precision, and rounded once.
    #[test]
    fn in_half_precisions(parts in proptest::collection::vec(drawn(0..5), 1..3)) {
        check::<half::f16>(&parts, 1.0 / 1024.0)?;
        check::<half::bf16>(&parts, 1.0 / 128.0)?;
    }
}

/// Counting in `f16` would stop at 2048.
#[cfg(feature = "half")]
#[test]
fn half_precisions_accumulate_in_single_precision() {
    let held = Buffer::from(vec![half::f16::ONE; 3000]).held();
    let mut place = StridedPlace::strided(0, [0]);
    place.table = Some(Box::new(Table::new(vec![0; 3000], &[3000], &[0])));
    let part = Part { field: Field::held(&[3000], &held, StridedPlace::strided(0, [1])), place };
    let found = evaluate(&[part], 2, DType::F16, false).unwrap();
    assert_eq!(Buffer::<half::f16>::of_held(&found).unwrap()[..], [3000.0, 0.0].map(half::f16::from_f32));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Some parts span several tiles, and some sums of products are worth a contraction.
    #[test]
    fn large_parts_are_their_loops(part in drawn(9..40)) {
        check::<f64>(&[part], 1e-12)?;
    }
}

/// A product that is added into windows. The loops are batch, filter, rows, rows of a window,
/// columns, and columns of a window.
fn windowed() -> impl Strategy<Value = Drawn> {
    let formula = proptest::sample::select(vec![
        Formula::Product,
        Formula::Scaled,
        Formula::Triple,
        Formula::SquareTimes,
    ]);
    let sizes = (1..4usize, 1..5usize, 0..9usize, 0..5usize, 1..9usize, 1..4usize);
    (formula, sizes, 1..3isize, 0..3usize, any::<u64>()).prop_flat_map(
        |(formula, (batch, filter, rows, height, columns, width), step, odd, seed)| {
            let sizes = vec![batch, filter, rows, height, columns, width];
            let (line, image) = (step * 12, step * 200);
            // Only a product of factors along the loops of a cotangent and of a filter is treated
            // as windows.
            let given = contiguous_in(&sizes, &[0, 1, 2, 4]);
            let filter = contiguous_in(&sizes, &[1, 3, 5]);
            let other = if odd == 0 { contiguous_in(&sizes, &[0, 5]) } else { contiguous_in(&sizes, &[1]) };
            let strides = vec![image, 0, line, line, step, if odd == 2 { 2 * step } else { step }];
            let place = Lying { strides, table: None };
            (given, filter, other, Just(sizes)).prop_map(move |(given, filter, other, sizes)| Drawn {
                formula,
                operands: vec![given, filter, other, Lying { strides: vec![0; 6], table: None }],
                sizes,
                place: place.clone(),
                seed,
            })
        },
    )
}

/// These loops, contiguous in a random order.
fn contiguous_in(sizes: &[usize], loops: &[usize]) -> impl Strategy<Value = Lying> + use<> {
    let (sizes, loops) = (sizes.to_vec(), loops.to_vec());
    Just(loops).prop_shuffle().prop_map(move |order| Lying {
        strides: StridedPlace::contiguous(&sizes, &order).strides.to_vec(),
        table: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn gradients_of_windows(part in windowed(), beside in proptest::option::of(windowed())) {
        let parts: Vec<Drawn> = core::iter::once(part).chain(beside).collect();
        check::<f64>(&parts, 1e-13)?;
        check::<f32>(&parts, 1e-6)?;
    }
}

/// The zeros around the positions of windows are not multiplied by infinite factors: only elements
/// that read such a factor are infinite.
#[test]
fn infinite_factors_of_windows() {
    let run = |filter: [f64; 2]| {
        let given = Buffer::from(vec![1.0, 2.0, 3.0, 4.0]).held();
        let filter = Buffer::from(filter.to_vec()).held();
        let given = Field::held(&[4, 2], &given, StridedPlace::strided(0, [1, 0]));
        let filter = Field::held(&[4, 2], &filter, StridedPlace::strided(0, [0, 1]));
        let field = given.map([&filter], |build, a, [b]| build.binary(BinaryOpcode::Chain, a, b));
        let part = Part { field, place: StridedPlace::strided(0, [1, 1]) };
        let found = evaluate(core::slice::from_ref(&part), 5, DType::F64, false).unwrap();
        let is_gathered = gathered::<f64>(&part).unwrap().is_some();
        (Buffer::<f64>::of_held(&found).unwrap().to_vec(), is_gathered)
    };
    assert_eq!(run([1.0, 10.0]), (vec![1.0, 12.0, 23.0, 34.0, 40.0], true));
    let inf = f64::INFINITY;
    assert_eq!(run([1.0, inf]), (vec![1.0, inf, inf, inf, inf], false));
}

/// Sums along different loops. Factors are either in memory or computed first.
#[test]
fn products_of_matrices() {
    let sizes = [33, 70, 41];
    for kept in [[0, 2], [2, 0], [0, 1], [1, 2]] {
        for formula in [Formula::Product, Formula::Scaled, Formula::SquareTimes, Formula::Triple] {
            let lying = |order: &[usize]| Lying {
                strides: StridedPlace::contiguous(&sizes, order).strides.to_vec(),
                table: None,
            };
            let part = Drawn {
                formula,
                sizes: sizes.to_vec(),
                operands: vec![lying(&[0, 1]), lying(&[1, 2]), lying(&[2]), lying(&[])],
                place: lying(&kept),
                seed: 7,
            };
            check::<f64>(&[part], 1e-12).unwrap_or_else(|error| panic!("{formula:?} {kept:?}: {error}"));
        }
    }
}

/// A sum over loops along which nothing varies is a multiplication by their sizes. A sum of no
/// elements is 0.
#[test]
fn loops_on_which_nothing_depends() {
    let held = Buffer::from(vec![1.5f64, 2.0]).held();
    for (size, expected) in [(0, [0.0, 0.0]), (1, [1.5, 2.0]), (1000, [1500.0, 2000.0])] {
        let field = Field::held(&[2, size], &held, StridedPlace::strided(0, [1, 0]));
        let part = Part { field, place: StridedPlace::strided(0, [1, 0]) };
        let found = evaluate(&[part], 2, DType::F64, false).unwrap();
        assert_eq!(Buffer::<f64>::of_held(&found).unwrap()[..], expected);
    }
    let found = evaluate(&[], 3, DType::F32, false).unwrap();
    assert_eq!(Buffer::<f32>::of_held(&found).unwrap()[..], [0.0; 3]);
}

/// Nothing is read from empty memory, even if the empty loop is not in the order.
#[test]
fn fields_without_elements() {
    let held = Buffer::from(Vec::<f64>::new()).held();
    let field = Field::held(&[3, 0], &held, StridedPlace::strided(0, [1, 0]));
    assert_eq!(crate::trace::compute::mapped::<f64>(&field, &[0]).unwrap(), [0.0; 3]);
    assert_eq!(crate::trace::compute::mapped::<f64>(&field, &[0, 1]).unwrap(), []);
}

/// Places outside the elements cause a panic, not undefined behavior.
#[test]
fn places_outside_are_refused() {
    let held = Buffer::from(vec![1.0f64; 6]).held();
    let run = |place: StridedPlace, out: StridedPlace, len: usize| {
        let field = Field::held(&[2, 3], &held, place);
        let run = move || evaluate(&[Part { field, place: out }], len, DType::F64, false).map(|_| ());
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
    };
    let inside = || StridedPlace::strided(0, [3, 1]);
    assert!(run(inside(), inside(), 6).is_ok());
    assert!(run(StridedPlace::strided(1, [3, 1]), inside(), 6).is_err());
    assert!(run(StridedPlace::strided(0, [3, -1]), inside(), 6).is_err());
    assert!(run(StridedPlace::strided(0, [isize::MAX, isize::MAX]), inside(), 6).is_err());
    assert!(run(inside(), inside(), 5).is_err());
    let mut table = inside();
    table.table = Some(Box::new(Table::new(vec![0, 1], &[2, 3], &[0])));
    assert!(run(table.clone(), inside(), 6).is_err());
    assert!(run(inside(), table, 6).is_err());
}

#[test]
fn traces_are_recorded_on_demand() {
    let node = Node::variable(DType::F64, 3, None, &Arc::default());
    let traced = Buffer::traced(vec![1.0f64, 2.0, 3.0], node);
    let part = Part {
        field: Field::held(&[3], &traced.held(), StridedPlace::strided(0, [1])),
        place: StridedPlace::strided(2, [-1]),
    };
    for recorded in [false, true] {
        let found = evaluate(core::slice::from_ref(&part), 3, DType::F64, recorded).unwrap();
        assert_eq!(found.node().is_some(), recorded);
        assert_eq!(Buffer::<f64>::of_held(&found).unwrap()[..], [3.0, 2.0, 1.0]);
    }
    let _: Arc<dyn Held> = traced.held();
}
