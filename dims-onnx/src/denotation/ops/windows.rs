//! Operators on images and sequences, which expect their inputs in a particular format.

use super::super::node::{Call, Results};
use super::super::value::{Axis, Size, Value};
use super::super::{BATCH, CHANNEL, FEATURE, FILTER_IN, FILTER_OUT, SPATIAL, TIME};

/// `NCHW`, with any number of spatial axes.
const IMAGE: [Option<&str>; 3] = [Some(BATCH), Some(CHANNEL), Some(FEATURE)];

/// Pooling: the number of positions changes, or, if `global`, becomes 1.
pub fn pool(call: &mut Call<'_>, global: bool) -> Results {
    call.expect(0, &IMAGE, true)?;
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let mut axes = axes.to_vec();
    for axis in &mut axes[2..] {
        axis.size = if global { Size::Fixed(1) } else { Size::Unknown };
    }
    let pooled = Value::with_axes(axes);
    // The second result of `MaxPool` has the positions of the maxima.
    Ok(vec![pooled.clone(), pooled])
}

/// Convolution: the channels of the data are contracted with the filter's input channels. The
/// filter's output channels are the channels of the result.
pub fn conv(call: &mut Call<'_>, data: usize, filter: usize, transposed: bool) -> Results {
    call.expect(data, &IMAGE, true)?;
    let (first, second) = if transposed { (FILTER_IN, FILTER_OUT) } else { (FILTER_OUT, FILTER_IN) };
    call.expect(filter, &[Some(first), Some(second), Some(SPATIAL)], true)?;
    let (axes, weights) = (call.axes(data), call.axes(filter));
    let Some(axes) = axes else { return Ok(Vec::new()) };
    if weights.as_ref().is_some_and(|weights| weights.len() != axes.len()) {
        return Err(format!(
            "the data have {} axes, but the filter has {}",
            axes.len(),
            weights.map_or(0, |w| w.len())
        ));
    }
    let yielded = weights.as_ref().map(|weights| &weights[usize::from(transposed)]);
    let denoted = axes[1].means(CHANNEL) || yielded.is_some_and(|axis| axis.means(FILTER_OUT));
    // With groups, a transposed filter has the output channels of one group only.
    let grouped = transposed && call.int("group").unwrap_or(1) != 1;
    let size = yielded.filter(|_| !grouped).map_or(Size::Unknown, |axis| axis.size.clone());
    let channels = Axis { size, meaning: denoted.then(|| CHANNEL.into()) };
    let mut out = vec![axes[0].clone(), channels];
    out.extend(axes[2..].iter().map(|axis| axis.resized(Size::Unknown)));
    Ok(vec![Value::with_axes(out)])
}

/// Batch normalization, with moments for each channel.
pub fn batch_norm(call: &mut Call<'_>) -> Results {
    call.expect(0, &[Some(BATCH), Some(CHANNEL), None], true)?;
    for moment in 1..call.inputs.len() {
        call.expect(moment, &[Some(CHANNEL)], false)?;
    }
    let moment = Value { integers: None, ..call.input(1) };
    let mut results = vec![Value { integers: None, ..call.input(0) }];
    results.resize(5, moment);
    Ok(results)
}

pub fn group_norm(call: &mut Call<'_>) -> Results {
    call.expect(0, &[Some(BATCH), Some(CHANNEL), None], true)?;
    Ok(vec![call.input(0)])
}

/// Instance normalization, over the positions of each channel of each image.
pub fn instance_norm(call: &mut Call<'_>) -> Results {
    call.expect(0, &IMAGE, true)?;
    for moment in 1..call.inputs.len() {
        call.expect(moment, &[Some(CHANNEL)], false)?;
    }
    Ok(vec![call.input(0)])
}

/// Operators that keep the axes of images.
pub fn images(call: &mut Call<'_>) -> Results {
    call.expect(0, &IMAGE, true)?;
    Ok(vec![call.input(0)])
}

/// Operators that move elements between channels and positions.
pub fn images_resized(call: &mut Call<'_>) -> Results {
    call.expect(0, &[IMAGE[0], IMAGE[1], IMAGE[2], IMAGE[2]], false)?;
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let mut axes = axes.to_vec();
    for axis in &mut axes[1..] {
        axis.size = Size::Unknown;
    }
    Ok(vec![Value::with_axes(axes)])
}

/// Recurrent networks: the results of all steps, `[time, directions, batch, features]`, and the
/// last states, without time. With `layout` 1, `batch` comes first.
pub fn recurrent(call: &mut Call<'_>) -> Results {
    let batch_first = call.int("layout").unwrap_or(0) == 1;
    let (time, batch) = if batch_first { (1, 0) } else { (0, 1) };
    let mut format = [Some(FEATURE); 3];
    (format[time], format[batch]) = (Some(TIME), Some(BATCH));
    call.expect(0, &format, false)?;
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let (time, batch) = (&axes[time], &axes[batch]);
    let (features, directions) =
        (Axis { size: Size::Unknown, meaning: axes[2].meaning.clone() }, Axis::UNKNOWN);
    let (all, last) = if batch_first {
        (vec![batch, time, &directions, &features], vec![batch, &directions, &features])
    } else {
        (vec![time, &directions, batch, &features], vec![&directions, batch, &features])
    };
    let value = |axes: Vec<&Axis>| Value::with_axes(axes.into_iter().cloned().collect());
    let (all, last) = (value(all), value(last));
    Ok(vec![all, last.clone(), last])
}
