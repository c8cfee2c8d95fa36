//! How optimizers implement [`Optimizer`](super::Optimizer).

/// Implements [`Optimizer`](super::Optimizer) with formulas over one parameter, its moments and its
/// gradient. `$form` maps the settings to a value, and the pattern that matches the value selects
/// the formula. After each pattern come the number of scalars of its formula, the number of tensors
/// that the formula changes, and the names of the moments.
macro_rules! optimizer {
    ($name:ident by $form:expr => { $($pattern:pat => $k:literal $m:literal [$($moment:literal),*],)+ }) => {
        impl<P: $crate::grad::Parameters> $crate::training::optim::Optimizer<P> for $name<P> {
            fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), $crate::error::DimError> {
                self.settings.check()?;
                let form = $form;
                match form(&self.settings) {
                    $($pattern => {
                        let mut step =
                            $crate::training::optim::step_after::StepAfter::new(stringify!($name), self.settings, &self.state)?;
                        self.state.step::<$k, $m>(&mut step, parameters, gradient)
                    })+
                }
            }

            fn programs(&self, elements: ::kernels::program::code::DType) -> Option<$crate::training::optim::StepPrograms> {
                let form = $form;
                Some(match form(&self.settings) {
                    $($pattern => {
                        $crate::training::optim::StepPrograms::of::<_, $k, $m, 1>(&self.settings, elements)
                    })+
                })
            }

            $crate::training::optim::implement::with_state!(stringify!($name), |optimizer: &Self| {
                let form = $form;
                match form(&optimizer.settings) {
                    $($pattern => &[$($moment),*],)+
                }
            });
        }
    };
}
pub(super) use optimizer;

/// The methods that return the state and describe it, for an optimizer with the field `state`.
macro_rules! with_state {
    ($kind:expr, $moments:expr) => {
        fn kind(&self) -> &'static str {
            $kind
        }

        fn state(&self) -> &$crate::training::optim::State<P> {
            &self.state
        }

        fn state_mut(&mut self) -> &mut $crate::training::optim::State<P> {
            &mut self.state
        }

        fn moments(&self) -> &'static [&'static str] {
            let moments: fn(&Self) -> &'static [&'static str] = $moments;
            moments(self)
        }
    };
}
pub(super) use with_state;
