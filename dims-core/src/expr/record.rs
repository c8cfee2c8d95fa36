//! What operators call that record what they run by themselves. Others say what is to run as a [step](crate::execute::step).

mod places;
mod recording;

pub(crate) use {places::*, recording::*};
