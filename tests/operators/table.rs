//! The types of the database's entries, and the macros that write them.

use crate::derivatives::{Given, Outcome};
use crate::value::{Argument, Domain, Elements, Layout, Random};

/// A group of related operators.
pub struct Family {
    /// The heading in `docs/operators.md`.
    pub title: &'static str,
    /// The text below the heading.
    pub about: &'static str,
    pub operators: Vec<Operator>,
}

/// An argument of an operator.
pub struct Parameter {
    pub name: &'static str,
    /// The element type as written: `T`, or a fixed one.
    pub elem: &'static str,
    pub dims: &'static [&'static str],
    /// The elements that it may have.
    pub domain: Domain,
    /// Whether it takes no extra dims although the others do.
    pub alone: bool,
}

pub type Draw = fn(&[usize], Layout, &mut Random, Domain, usize) -> Argument;
pub type Run = fn(&[Argument]) -> Elements;

/// An operator with one element type in place of `T`.
pub struct Case {
    pub dtype: &'static str,
    /// Functions that draw random arguments, from the shape, a layout, a random generator, the
    /// domain, and the exclusive limit of positions.
    pub draw: Vec<Draw>,
    /// The operator on its arguments. For the first element type, there is a second call, with
    /// `Outer` and `Inner` in the first argument and `Inner` in the others, unless they are
    /// `alone`. An operator without arguments, or one that is `alone` or `apart`, has only the
    /// first call. Other element types do not need the second: batching does not depend on the
    /// type, and each call is one more expression to compile.
    pub runs: Vec<Run>,
    /// The operator as plain loops, without extra dims.
    pub loops: fn(&[Elements]) -> Elements,
}

/// A call of an operator in which some arguments are variables.
pub type Slope = fn(&[Given<'_>]) -> Outcome;

/// An operator that takes arguments in double precision, for derivatives and recordings.
pub struct Slopes {
    /// Draws random arguments, as in [`Case`].
    pub draw: Vec<Draw>,
    /// For each argument, whether it is a variable, which is passed as floats.
    pub floats: Vec<bool>,
    /// The operator, with extra dims if it takes them.
    pub run: Slope,
    /// Whether there are extra dims, as in the second call of a [`Case`].
    pub further: bool,
    /// Whether the arguments are not floats: they are drawn in their own types, passed as floats,
    /// and cast back.
    pub cast: bool,
}

/// Calls an operator with input that it refuses. Returns the error message, if there is an error,
/// and the expected one.
pub type Refusal = fn() -> (Option<String>, &'static str);

/// An entry of the database.
pub struct Operator {
    /// The name of the module with its tests.
    pub name: &'static str,
    /// The doc comment of the entry, which describes the result.
    pub doc: &'static str,
    /// The call, as in the entry.
    pub call: &'static str,
    /// Its arguments.
    pub parameters: &'static [Parameter],
    /// The dims of the result.
    pub out: &'static [&'static str],
    /// The dims that it treats specially. All others pass through.
    pub along: &'static [&'static str],
    /// The dims whose size must not change: other sizes have another meaning, or are errors.
    pub keep: &'static [&'static str],
    /// The names of the element types.
    pub dtypes: Vec<&'static str>,
    /// The cases for the element types; those that need a feature only exist with it.
    pub cases: Vec<Case>,
    /// How to test its derivative, if it has arguments and its first element type is `f32` or
    /// `f64`.
    pub slopes: Option<Slopes>,
    /// How to record an operator without `slopes`, unless its first element type is complex.
    pub whole: Option<Slopes>,
    /// Whether extra dims are refused, because the number of selected or distinct elements depends
    /// on the data.
    pub refuses: bool,
    /// Inputs that are errors, with their messages.
    pub errors: Vec<Refusal>,
    /// Its names in PyTorch, JAX and NumPy.
    pub names: [&'static str; 3],
}

/// Defines a module for each entry, with its tests and the function `entry`, and a function
/// `entries` that returns them all.
///
/// ```text
/// /// What it computes.
/// name [f32 i32] (x: T [I J], ids: usize [K] in Below("J")) -> [I K],
///     call: x.take(J, ids),            the operator, on tensors with these dims
///     loops: build(&[..], |at| ..),    the same on arrays
///     along: [J], keep: [],            see `Operator`
///     errors: [x.try_take(..) => "message"],
///     names: "PyTorch" "JAX" "NumPy";
/// ```
///
/// The element types `f16` and `half`, which stands for `f16` and `bf16`, need the feature `half`.
/// With them, the loops run on `f32`, and the operator must return the result of the loops, rounded
/// once. `(alone x: ..)` is an operator that takes no extra dims. `(apart x: ..)` is one that is
/// not tested with extra dims, because its result depends on the positions of elements.
/// `mask: bool [I J] @alone` is a parameter that takes no extra dims.
#[macro_export]
macro_rules! operators {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident [$first:ident $($t:ident)*] $params:tt -> $out:tt,
            call: $call:expr,
            loops: $loops:expr,
            along: [$($along:ident)*], keep: [$($keep:ident)*],
            $(errors: [$($error:expr => $message:expr),* $(,)?],)?
            names: $torch:literal $jax:literal $numpy:literal;
    )*) => {
        $(
            // A module and a function can have the same name.
            pub mod $name {
                #[allow(unused_imports)]
                use super::*;

                #[allow(unused_mut, unused_variables, dead_code, clippy::redundant_closure_call)]
                pub fn entry() -> $crate::table::Operator {
                    $crate::table::Operator {
                        name: stringify!($name),
                        doc: concat!($($doc),*),
                        call: stringify!($call),
                        parameters: $crate::operator!(@parameters $params),
                        out: $crate::operator!(@names $out),
                        along: &[$(stringify!($along)),*],
                        keep: &[$(stringify!($keep)),*],
                        dtypes: [$crate::operator!(@dtypes $first) $(, $crate::operator!(@dtypes $t))*].concat(),
                        cases: {
                            let mut cases = Vec::new();
                            $crate::operator!(@cases cases, batched $first, $params, $out, $call, $loops);
                            $($crate::operator!(@cases cases, single $t, $params, $out, $call, $loops);)*
                            cases
                        },
                        slopes: $crate::operator!(@slopes $first, $params, $out, $call),
                        whole: $crate::operator!(@whole $first, $params, $out, $call),
                        refuses: $crate::operator!(@refuses $params),
                        errors: vec![$($(
                            (|| (($error).err().map(|error| error.to_string()), $message)) as $crate::table::Refusal
                        ),*)?],
                        names: [$torch, $jax, $numpy],
                    }
                }

                #[test]
                fn is_right() {
                    $crate::check::check(&entry());
                }

                #[test]
                fn has_its_derivative() {
                    $crate::derivatives::check(&entry());
                }

                #[test]
                fn is_recorded() {
                    $crate::recorded::check(&entry());
                }

                #[cfg(feature = "pjrt")]
                #[test]
                fn runs_on_xla() {
                    $crate::xla::check(&entry());
                }
            }
        )*

        pub fn entries() -> Vec<$crate::table::Operator> {
            vec![$($name::entry()),*]
        }
    };
}

/// Parts of an entry.
#[macro_export]
macro_rules! operator {
    (@dtypes half) => { vec!["f16", "bf16"] };
    (@dtypes f16) => { vec!["f16"] };
    (@dtypes $t:ident) => { vec![<$t as $crate::value::Dtype>::NAME] };
    (@cases $cases:ident, $how:ident half, $params:tt, $out:tt, $call:expr, $loops:expr) => {
        #[cfg(feature = "half")]
        {
            $cases.push($crate::operator!(@case $how ::half::f16, $params, $out, $call, $loops));
            $cases.push($crate::operator!(@case $how ::half::bf16, $params, $out, $call, $loops));
        }
    };
    (@cases $cases:ident, $how:ident f16, $params:tt, $out:tt, $call:expr, $loops:expr) => {
        #[cfg(feature = "half")]
        $cases.push($crate::operator!(@case $how ::half::f16, $params, $out, $call, $loops));
    };
    (@cases $cases:ident, $how:ident $t:ident, $params:tt, $out:tt, $call:expr, $loops:expr) => {
        $cases.push($crate::operator!(@case $how $t, $params, $out, $call, $loops));
    };
    (@refuses (alone $($params:tt)*)) => { true };
    (@refuses $params:tt) => { false };
    (@parameters (alone $($params:tt)*)) => { $crate::operator!(@parameters ($($params)*)) };
    (@parameters (apart $($params:tt)*)) => { $crate::operator!(@parameters ($($params)*)) };
    (@parameters ($($x:ident: $e:tt [$($d:ident)*] $(@ $alone:ident)? $(in $domain:expr)?),*)) => {
        &[$($crate::table::Parameter {
            name: stringify!($x),
            elem: stringify!($e),
            dims: &[$(stringify!($d)),*],
            domain: $crate::operator!(@domain $($domain)?),
            alone: $crate::operator!(@is $($alone)?),
        }),*]
    };
    (@is alone) => { true };
    (@is) => { false };
    (@names [$($name:ident)*]) => { &[$(stringify!($name)),*] };
    (@domain) => { $crate::value::Domain::Any };
    (@domain $domain:expr) => {{
        use $crate::value::Domain::*;
        $domain
    }};
    // Without arguments there is nothing to batch.
    (@case $how:ident $t:ty, (), [$($out:ident)*], $call:expr, $loops:expr) => {
        $crate::table::Case {
            dtype: <$t as $crate::value::Dtype>::NAME,
            draw: vec![],
            runs: {
                type T = $t;
                vec![|_| $crate::value::IntoElements::into_elements(($call).order(($($out,)*)))]
            },
            loops: {
                type T = <$t as $crate::value::Dtype>::Loops;
                |_| $crate::value::IntoElements::into_elements($loops)
            },
        }
    };
    (@case $how:ident $t:ty, (apart $($params:tt)*), $out:tt, $call:expr, $loops:expr) => {
        $crate::operator!(@case single $t, ($($params)*), $out, $call, $loops)
    };
    (@case $how:ident $t:ty, (alone $($params:tt)*), $out:tt, $call:expr, $loops:expr) => {
        $crate::operator!(@case single $t, ($($params)*), $out, $call, $loops)
    };
    (@case single $t:ty, ($($x:ident: $e:tt [$($d:ident)*] $(@ $alone:ident)? $(in $domain:expr)?),*), [$($out:ident)*], $call:expr, $loops:expr) => {
        $crate::table::Case {
            dtype: <$t as $crate::value::Dtype>::NAME,
            draw: {
                type T = $t;
                vec![$($crate::value::Argument::random::<$e> as $crate::table::Draw),*]
            },
            runs: {
                type T = $t;
                vec![
                    (|arguments| {
                        let mut arguments = arguments.iter();
                        $(let $x = $crate::operator!(@next arguments, $e); let $x = $x.at(($($d,)*));)*
                        $crate::value::IntoElements::into_elements(($call).order(($($out,)*)))
                    }) as $crate::table::Run,
                ]
            },
            loops: {
                type T = <$t as $crate::value::Dtype>::Loops;
                |arguments| {
                    let mut arguments = arguments.iter();
                    $(let $x = <$e as $crate::value::Dtype>::unwrap(arguments.next().unwrap());)*
                    $crate::value::IntoElements::into_elements($loops)
                }
            },
        }
    };
    (@case batched $t:ty, ($x:ident: $e:tt [$($d:ident)*] $(in $domain:expr)?
            $(, $y:ident: $ye:tt [$($yd:ident)*] $(@ $alone:ident)? $(in $ydomain:expr)?)*),
        [$($out:ident)*], $call:expr, $loops:expr) => {
        $crate::table::Case {
            dtype: <$t as $crate::value::Dtype>::NAME,
            draw: {
                type T = $t;
                vec![$crate::value::Argument::random::<$e> as $crate::table::Draw $(, $crate::value::Argument::random::<$ye> as $crate::table::Draw)*]
            },
            runs: {
                type T = $t;
                vec![
                    (|arguments| {
                        let mut arguments = arguments.iter();
                        let $x = $crate::operator!(@next arguments, $e);
                        let $x = $x.at(($($d,)*));
                        $(let $y = $crate::operator!(@next arguments, $ye); let $y = $y.at(($($yd,)*));)*
                        $crate::value::IntoElements::into_elements(($call).order(($($out,)*)))
                    }) as $crate::table::Run,
                    (|arguments| {
                        let mut arguments = arguments.iter();
                        let $x = $crate::operator!(@next arguments, $e);
                        let $x = $x.at((Outer, $($d,)* Inner));
                        $(
                            let $y = $crate::operator!(@next arguments, $ye);
                            let $y = $crate::operator!(@inner $y [$($yd)*] $($alone)?);
                        )*
                        $crate::value::IntoElements::into_elements(($call).order((Outer, $($out,)* Inner)))
                    }) as $crate::table::Run,
                ]
            },
            loops: {
                type T = <$t as $crate::value::Dtype>::Loops;
                |arguments| {
                    let mut arguments = arguments.iter();
                    let $x = <$e as $crate::value::Dtype>::unwrap(arguments.next().unwrap());
                    $(let $y = <$ye as $crate::value::Dtype>::unwrap(arguments.next().unwrap());)*
                    $crate::value::IntoElements::into_elements($loops)
                }
            },
        }
    };
    // Without arguments there is nothing to differentiate with respect to.
    (@slopes $t:ident, (), $out:tt, $call:expr) => { None };
    (@slopes f32, $params:tt, $out:tt, $call:expr) => { Some($crate::operator!(@slope $params, $out, $call)) };
    (@slopes f64, $params:tt, $out:tt, $call:expr) => { Some($crate::operator!(@slope $params, $out, $call)) };
    (@slopes $t:ident, $params:tt, $out:tt, $call:expr) => { None };
    (@slope (apart $($params:tt)*), $out:tt, $call:expr) => { $crate::operator!(@slope single ($($params)*), $out, $call) };
    (@slope (alone $($params:tt)*), $out:tt, $call:expr) => { $crate::operator!(@slope single ($($params)*), $out, $call) };
    (@slope single ($($x:ident: $e:tt [$($d:ident)*] $(@ $alone:ident)? $(in $domain:expr)?),*), $out:tt, $call:expr) => {{
        type T = f64;
        $crate::table::Slopes {
            draw: vec![$($crate::value::Argument::random::<$e> as $crate::table::Draw),*],
            floats: vec![$($crate::operator!(@is_float $e)),*],
            run: |given| {
                let mut given = given.iter();
                $(let $x = given.next().expect("each parameter has an argument").view::<$e>(); let $x = $x.at(($($d,)*));)*
                $crate::operator!(@outcome $call, $out)
            },
            further: false,
            cast: false,
        }
    }};
    (@slope ($x:ident: $e:tt [$($d:ident)*] $(in $domain:expr)?
            $(, $y:ident: $ye:tt [$($yd:ident)*] $(@ $alone:ident)? $(in $ydomain:expr)?)*),
        [$($out:ident)*], $call:expr) => {{
        type T = f64;
        $crate::table::Slopes {
            draw: vec![$crate::value::Argument::random::<$e> as $crate::table::Draw $(, $crate::value::Argument::random::<$ye> as $crate::table::Draw)*],
            floats: vec![$crate::operator!(@is_float $e) $(, $crate::operator!(@is_float $ye))*],
            run: |given| {
                let mut given = given.iter();
                let $x = given.next().expect("each parameter has an argument").view::<$e>();
                let $x = $x.at((Outer, $($d,)* Inner));
                $(
                    let $y = given.next().expect("each parameter has an argument").view::<$ye>();
                    let $y = $crate::operator!(@inner $y [$($yd)*] $($alone)?);
                )*
                $crate::operator!(@outcome $call, [Outer $($out)* Inner])
            },
            further: true,
            cast: false,
        }
    }};
    // Complex numbers cannot be recorded.
    (@whole Complex64, $params:tt, $out:tt, $call:expr) => { None };
    (@whole $t:ident, (), $out:tt, $call:expr) => { $crate::operator!(@cast $t, (), $out, $call) };
    (@whole f32, $params:tt, $out:tt, $call:expr) => { None };
    (@whole f64, $params:tt, $out:tt, $call:expr) => { None };
    (@whole $t:ident, (apart $($params:tt)*), $out:tt, $call:expr) => { $crate::operator!(@cast $t, ($($params)*), $out, $call) };
    (@whole $t:ident, (alone $($params:tt)*), $out:tt, $call:expr) => { $crate::operator!(@cast $t, ($($params)*), $out, $call) };
    (@whole $t:ident, $params:tt, $out:tt, $call:expr) => { $crate::operator!(@cast $t, $params, $out, $call) };
    (@cast $t:ident, ($($x:ident: $e:tt [$($d:ident)*] $(@ $alone:ident)? $(in $domain:expr)?),*), $out:tt, $call:expr) => {{
        type T = $t;
        Some($crate::table::Slopes {
            draw: vec![$($crate::value::Argument::random::<$e> as $crate::table::Draw),*],
            floats: vec![$($crate::operator!(@is_any $x)),*],
            run: |given| {
                let mut given = given.iter();
                $(
                    let $x = given.next().expect("each parameter has an argument").view::<f64>();
                    let $x = $x.at(($($d,)*)).cast::<$e>().eval();
                    let $x = $x.view();
                )*
                $crate::operator!(@outcome $call, $out)
            },
            further: false,
            cast: true,
        })
    }};
    (@is_any $x:ident) => { true };
    (@is_float T) => { true };
    (@is_float $e:tt) => { false };
    (@outcome $call:expr, []) => { $crate::derivatives::IntoOutcome::into_outcome((zeros::<f64, _>($crate::Flat.of(1)) + ($call)).eval()) };
    (@outcome $call:expr, [$($out:ident)*]) => {
        $crate::derivatives::IntoOutcome::into_outcome(($call).flatten(($($out,)*), $crate::Flat).eval())
    };
    (@inner $y:ident [$($d:ident)*] alone) => { $y.at(($($d,)*)) };
    (@inner $y:ident [$($d:ident)*]) => { $y.at(($($d,)* Inner)) };
    (@next $arguments:ident, $e:ty) => { $arguments.next().expect("each parameter has an argument").view::<$e>() };
}

/// Entries for elementwise operations, with the call on a tensor and the same on an element:
/// `exp [f32] (x in Any), x.exp(), x.exp(), "PyTorch" "JAX" "NumPy";`
#[macro_export]
macro_rules! pointwise {
    ($($(#[doc = $doc:literal])* $name:ident [$($t:ident)*] ($x:ident $(in $domain:expr)?), $call:expr, $value:expr, $torch:literal $jax:literal $numpy:literal;)*) => {
        $crate::operators! {$(
            $(#[doc = $doc])*
            $name [$($t)*] ($x: T [I J] $(in $domain)?) -> [J I],
                call: $call,
                loops: { let $x = $x.t().mapv(|$x: T| $value); $x },
                along: [], keep: [],
                names: $torch $jax $numpy;
        )*}
    };
}

/// Like `pointwise`, for operations on two tensors.
#[macro_export]
macro_rules! pointwise2 {
    ($($(#[doc = $doc:literal])* $name:ident [$($t:ident)*] ($x:ident $(in $domain:expr)?, $y:ident $(in $ydomain:expr)?), $call:expr, $value:expr, $torch:literal $jax:literal $numpy:literal;)*) => {
        $crate::operators! {$(
            $(#[doc = $doc])*
            $name [$($t)*] ($x: T [I J] $(in $domain)?, $y: T [K J] $(in $ydomain)?) -> [K I J],
                call: $call,
                loops: $crate::loops::build(&[$y.shape()[0], $x.shape()[0], $x.shape()[1]], |at| {
                    let ($x, $y): (T, T) = ($x[[at[1], at[2]]], $y[[at[0], at[2]]]);
                    $value
                }),
                along: [], keep: [],
                names: $torch $jax $numpy;
        )*}
    };
}
