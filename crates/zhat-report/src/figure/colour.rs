//! Colours: the four of the paper, a few neutral ones, and the scale of densities.

/// A colour by its red, green and blue parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// Red, 0 to 255.
    pub red: u8,
    /// Green, 0 to 255.
    pub green: u8,
    /// Blue, 0 to 255.
    pub blue: u8,
}

impl Colour {
    /// The paper's first colour.
    pub const BLUE: Self = Self::new(31, 68, 156);
    /// The paper's second colour.
    pub const VERMILION: Self = Self::new(240, 80, 57);
    /// The paper's third colour.
    pub const SKY: Self = Self::new(124, 161, 204);
    /// The paper's fourth colour.
    pub const ROSE: Self = Self::new(238, 186, 180);
    /// For what stands beside the data: keys and references.
    pub const GREY: Self = Self::new(110, 114, 124);
    /// For text and axes.
    pub const INK: Self = Self::new(34, 36, 42);
    /// For grid lines.
    pub const HAZE: Self = Self::new(230, 232, 237);
    /// For the background.
    pub const WHITE: Self = Self::new(255, 255, 255);

    /// The paper's colours, then others that can be told apart from them and from each other.
    pub const PALETTE: [Self; 8] = [
        Self::BLUE,
        Self::VERMILION,
        Self::SKY,
        Self::ROSE,
        Self::new(22, 128, 108),
        Self::new(202, 138, 4),
        Self::new(126, 70, 150),
        Self::GREY,
    ];

    /// A colour by its parts.
    pub const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self { red, green, blue }
    }

    /// The colour of the `index`-th of several series; begins again after the last.
    pub const fn of_series(index: usize) -> Self {
        Self::PALETTE[index % Self::PALETTE.len()]
    }

    /// The colour of a density, from white at 0 through the paper's blues to nearly black at 1.
    pub(super) fn of_density(fraction: f64) -> Self {
        const STOPS: [Colour; 4] =
            [Colour::WHITE, Colour::SKY, Colour::BLUE, Colour::new(10, 18, 52)];
        Self::between(&STOPS, fraction)
    }

    /// The colour of a number between -1 and 1: from a dark red through white at 0 to the paper's blue.
    pub(super) fn of_sign(number: f64) -> Self {
        const STOPS: [Colour; 5] =
            [Colour::new(150, 28, 12), Colour::VERMILION, Colour::WHITE, Colour::SKY, Colour::BLUE];
        Self::between(&STOPS, 0.5 + 0.5 * number)
    }

    /// The colour at some part of the way along the stops.
    fn between(stops: &[Self], fraction: f64) -> Self {
        let position = fraction.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
        let below = (position as usize).min(stops.len() - 2);
        let part = position - below as f64;
        let mix = |from: u8, to: u8| {
            (f64::from(from) + part * (f64::from(to) - f64::from(from))).round() as u8
        };
        let (from, to) = (stops[below], stops[below + 1]);
        Self::new(mix(from.red, to.red), mix(from.green, to.green), mix(from.blue, to.blue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denser_is_darker() {
        let lightness = |fraction| {
            let colour = Colour::of_density(fraction);
            u32::from(colour.red) + u32::from(colour.green) + u32::from(colour.blue)
        };
        assert_eq!(Colour::of_density(0.0), Colour::WHITE);
        assert!(
            (0..100).all(|k| lightness(f64::from(k + 1) / 100.0) < lightness(f64::from(k) / 100.0))
        );
    }

    #[test]
    fn zero_is_white_and_signs_are_told_apart() {
        assert_eq!(Colour::of_sign(0.0), Colour::WHITE);
        let (below, above) = (Colour::of_sign(-0.6), Colour::of_sign(0.6));
        assert!(below.red > below.blue && above.blue > above.red);
    }
}
