//! Distances between two sets of clustered points: `cargo bench --workspace --bench wasserstein`.

use divan::Bencher;
use zhat::evaluate::{sliced_wasserstein, wasserstein};
use zhat::rng::Streams;

fn main() {
    divan::main();
}

#[divan::bench(args = [2, 6, 43], consts = [2_000, 10_000], sample_count = 3, sample_size = 1)]
fn exact<const NUMBER: usize>(bencher: Bencher, dimension: usize) {
    let [x, y] = clusters(NUMBER, dimension);
    bencher.bench_local(|| wasserstein(&x, &y, dimension).expect("finite points"));
}

#[divan::bench(args = [2, 6, 43], consts = [10_000, 100_000], sample_count = 3, sample_size = 1)]
fn sliced<const NUMBER: usize>(bencher: Bencher, dimension: usize) {
    let [x, y] = clusters(NUMBER, dimension);
    let rng = &mut Streams::new(0).stream("directions", 0, 0);
    bencher.bench_local(|| sliced_wasserstein(&x, &y, dimension, 100, rng).expect("finite points"));
}

/// Draws from two mixtures of eight Gaussians that differ by a small shift, with a standard deviation of about 1.
fn clusters(number: usize, dimension: usize) -> [Vec<f32>; 2] {
    let rng = &mut Streams::new(1).stream("points", 0, 0);
    let centres = rng.normals(8 * dimension);
    [0.0, 0.02].map(|shift| {
        (0..number)
            .flat_map(|_| {
                let centre = rng.index(8) * dimension;
                let noise = rng.normals(dimension);
                let point = centres[centre..].iter().zip(noise);
                point.map(|(c, e)| (0.9 * c + 0.4 * e + shift) as f32).collect::<Vec<_>>()
            })
            .collect()
    })
}
