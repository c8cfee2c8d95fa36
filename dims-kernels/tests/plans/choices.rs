//! Choices made from bytes, which are followed by endless zeros.

pub struct Choices<'b> {
    bytes: &'b [u8],
}

impl<'b> Choices<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        Choices { bytes }
    }

    fn byte(&mut self) -> u8 {
        let Some((&byte, others)) = self.bytes.split_first() else { return 0 };
        self.bytes = others;
        byte
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        assert!((1..=1 << 16).contains(&count));
        let mut number = usize::from(self.byte());
        if count > 1 << 8 {
            number = number << 8 | usize::from(self.byte());
        }
        number % count
    }

    /// A number from `least` to `most`.
    pub fn within(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// True for one of `count` options.
    pub fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// One of these values.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// The numbers below `count` in any order.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            numbers.swap(at, self.below(at + 1));
        }
        numbers
    }

    /// Sizes of axes: usually at most 7, sometimes up to `most`. Together the axes have at most
    /// `positions` positions.
    pub fn sizes(&mut self, axes: usize, most: usize, positions: usize) -> Vec<usize> {
        let mut left = positions;
        (0..axes)
            .map(|_| {
                let size = match self.below(16) {
                    0 => 1,
                    1 => self.below(2),
                    2..4 => self.within(1, most),
                    _ => self.within(1, 7),
                };
                let size = size.min(left.max(1));
                left /= size.max(1);
                size
            })
            .collect()
    }

    /// An endless sequence of small integers from a seed.
    pub fn numbers(&mut self) -> impl FnMut() -> i8 + use<> {
        let mut state = self.below(1 << 16) as u64;
        move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % 17) as i8 - 8
        }
    }
}
