//! Loading linear layers from files.

use super::{Load, Loader};
use crate::file::Stored;
use crate::operators::nn::linear::{Linear, Projection};
use crate::types::dim::DimList;
use crate::types::set::{Dims, Union};

#[diagnostic::do_not_recommend]
impl<'a, I, O, T> Load<'a> for Linear<I, O, T>
where
    I: Dims + DimList,
    O: Dims + DimList + Union<I>,
    T: Stored,
{
    fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
        // Load both before `?`, so that errors of both are reported.
        let weight = from.field("weight", |from| from.tensor_laid_out::<_, (O, I), (I, O)>());
        let bias = from.field("bias", |from| from.tensor::<_, (O,)>());
        Some(Linear { weight: weight?, bias: bias? })
    }
}

#[diagnostic::do_not_recommend]
impl<'a, I, O, T> Load<'a> for Projection<I, O, T>
where
    I: Dims + DimList,
    O: Dims + DimList + Union<I>,
    T: Stored,
{
    fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
        let weight = from.field("weight", |from| from.tensor_laid_out::<_, (O, I), (I, O)>());
        Some(Projection { weight: weight? })
    }
}
