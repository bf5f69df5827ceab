//! Nothing but the products of a training step, to be timed against the step itself.

use super::panels::Panels;

/// Does the products of a layer of this width on so many rows, `passes` times: forward, backward and transposed. Gives the
/// number of floating-point operations.
pub fn products_alone(width: usize, rows: usize, passes: usize) -> f64 {
    let values: Vec<f32> = (0..rows.max(width) * width).map(|i| (i % 7) as f32 * 0.1).collect();
    let left = Panels::from_rows(&values, width, rows, width);
    let weight = Panels::from_rows(&values, width, width, width);
    let (mut out, mut gradient) = (Panels::zeros(rows, width), Panels::zeros(width, width));
    for _ in 0..passes {
        for _ in 0..2 {
            out.set_product(&left, &weight, width, None);
        }
        gradient.add_transposed_product(&left, width, &out);
    }
    std::hint::black_box(&gradient);
    6.0 * (passes * rows * width * width) as f64
}
