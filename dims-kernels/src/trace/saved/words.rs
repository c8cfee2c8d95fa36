//! The saved names of reductions and of work along lines.

use crate::ops::code::{LineWork, ReductionKind};
use smallvec::SmallVec;

impl ReductionKind {
    /// The saved name of the reduction, and the bits of its constants.
    pub(super) fn words(self) -> (&'static str, SmallVec<[u64; 2]>) {
        let float = |value: f64| SmallVec::from_slice(&[value.to_bits()]);
        match self {
            ReductionKind::Sum => ("Sum", SmallVec::new()),
            ReductionKind::Mean => ("Mean", SmallVec::new()),
            ReductionKind::Prod => ("Prod", SmallVec::new()),
            ReductionKind::Max => ("Max", SmallVec::new()),
            ReductionKind::Min => ("Min", SmallVec::new()),
            ReductionKind::Variance { ddof, root: false } => ("Variance", float(ddof)),
            ReductionKind::Variance { ddof, root: true } => ("Deviation", float(ddof)),
            ReductionKind::LogSumExp => ("LogSumExp", SmallVec::new()),
            ReductionKind::Norm => ("Norm", SmallVec::new()),
            ReductionKind::NormP(p) => ("NormP", float(p)),
            ReductionKind::ArgMax => ("ArgMax", SmallVec::new()),
            ReductionKind::ArgMin => ("ArgMin", SmallVec::new()),
            ReductionKind::Any => ("Any", SmallVec::new()),
            ReductionKind::All => ("All", SmallVec::new()),
            ReductionKind::Count => ("Count", SmallVec::new()),
            ReductionKind::Opaque => ("Opaque", SmallVec::new()),
        }
    }

    /// The reduction with this name and these constants, if programs support it.
    pub(super) fn of_words(name: &str, words: &[u64]) -> Option<Self> {
        Some(match (name, words) {
            ("Sum", []) => ReductionKind::Sum,
            ("Mean", []) => ReductionKind::Mean,
            ("Prod", []) => ReductionKind::Prod,
            ("Max", []) => ReductionKind::Max,
            ("Min", []) => ReductionKind::Min,
            ("Variance", &[ddof]) => ReductionKind::Variance { ddof: f64::from_bits(ddof), root: false },
            ("Deviation", &[ddof]) => ReductionKind::Variance { ddof: f64::from_bits(ddof), root: true },
            ("LogSumExp", []) => ReductionKind::LogSumExp,
            ("Norm", []) => ReductionKind::Norm,
            ("NormP", &[p]) => ReductionKind::NormP(f64::from_bits(p)),
            ("ArgMax", []) => ReductionKind::ArgMax,
            ("ArgMin", []) => ReductionKind::ArgMin,
            ("Any", []) => ReductionKind::Any,
            ("All", []) => ReductionKind::All,
            ("Count", []) => ReductionKind::Count,
            _ => return None,
        })
    }
}

impl LineWork {
    /// The saved name of the work, and the bits of its constants.
    pub(super) fn words(self) -> (&'static str, SmallVec<[u64; 2]>) {
        let float = |value: f64| SmallVec::from_slice(&[value.to_bits()]);
        match self {
            LineWork::Softmax { log: false } => ("Softmax", SmallVec::new()),
            LineWork::Softmax { log: true } => ("LogSoftmax", SmallVec::new()),
            LineWork::Cumulate => ("Cumulate", SmallVec::new()),
            LineWork::CumulateProduct => ("CumulateProduct", SmallVec::new()),
            LineWork::CumulateBest { greatest: true } => ("CumulateMax", SmallVec::new()),
            LineWork::CumulateBest { greatest: false } => ("CumulateMin", SmallVec::new()),
            LineWork::CumulateLogSumExp => ("CumulateLogSumExp", SmallVec::new()),
            LineWork::Standardize { eps } => ("Standardize", float(eps)),
            LineWork::RootMeanSquare { eps } => ("RootMeanSquare", float(eps)),
            LineWork::UnitLength { eps } => ("UnitLength", float(eps)),
            LineWork::Opaque => ("Opaque", SmallVec::new()),
        }
    }

    /// The work with this name and these constants, if programs support it.
    pub(super) fn of_words(name: &str, words: &[u64]) -> Option<Self> {
        Some(match (name, words) {
            ("Softmax", []) => LineWork::Softmax { log: false },
            ("LogSoftmax", []) => LineWork::Softmax { log: true },
            ("Cumulate", []) => LineWork::Cumulate,
            ("CumulateProduct", []) => LineWork::CumulateProduct,
            ("CumulateMax", []) => LineWork::CumulateBest { greatest: true },
            ("CumulateMin", []) => LineWork::CumulateBest { greatest: false },
            ("CumulateLogSumExp", []) => LineWork::CumulateLogSumExp,
            ("Standardize", &[eps]) => LineWork::Standardize { eps: f64::from_bits(eps) },
            ("RootMeanSquare", &[eps]) => LineWork::RootMeanSquare { eps: f64::from_bits(eps) },
            ("UnitLength", &[eps]) => LineWork::UnitLength { eps: f64::from_bits(eps) },
            _ => return None,
        })
    }
}
