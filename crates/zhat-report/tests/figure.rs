//! Drawings: no text left, the right size, something to see, and errors for what cannot be drawn.

mod common;

use tiny_skia::{Paint, PathBuilder, Pixmap, Transform};
use zhat_report::{
    export,
    figure::{
        Colour, Density, Figure, LegendPosition, Marker, Panel, Scale, Series, Spread, Stroke,
    },
};

fn curve(colour: Colour) -> Series {
    let points = (1..=100).map(|step| (f64::from(step), 10.0 / f64::from(step))).collect();
    Series::line("a & <b>_{θ}", colour, points)
}

fn panel() -> Panel {
    Panel::new("Title").x("iteration", Scale::Log).y("KL[p_{d} ‖ p_{θ}]", Scale::Log)
}

fn pixels(figure: &Figure, scale: f32) -> Pixmap {
    let png = figure.draw().expect("drawn").png(scale).expect("rasterised");
    Pixmap::decode_png(&png).expect("a PNG")
}

/// How many pixels are about of this colour.
fn count(pixels: &Pixmap, colour: Colour) -> usize {
    let near = |one: u8, other: u8| one.abs_diff(other) < 12;
    pixels
        .pixels()
        .iter()
        .filter(|p| {
            near(p.red(), colour.red)
                && near(p.green(), colour.green)
                && near(p.blue(), colour.blue)
        })
        .count()
}

#[test]
fn text_becomes_outlines() {
    let labelled =
        Figure::new(vec![panel().series(curve(Colour::BLUE))]).draw().expect("drawn").svg();
    let bare = Figure::new(vec![
        Panel { title: String::new(), y_label: String::new(), ..panel() }
            .series(curve(Colour::BLUE)),
    ]);
    assert!(!labelled.contains("<text") && !labelled.contains("font-family"));
    assert!(
        labelled.matches("<path").count()
            > bare.draw().expect("drawn").svg().matches("<path").count()
    );
}

#[test]
fn the_png_has_the_size_of_the_figure_times_the_scale_and_shows_the_curve() {
    let figure = Figure::new(vec![panel().series(curve(Colour::VERMILION)), panel()])
        .with_panel_size(300.0, 200.0);
    let pixels = pixels(&figure, 2.0);
    assert_eq!((pixels.width(), pixels.height()), (1200, 400));
    let (seen, white) = (count(&pixels, Colour::VERMILION), count(&pixels, Colour::WHITE));
    assert!(seen > 500, "{seen} pixels of the curve");
    assert!(white > 1200 * 400 / 2 && white < 1200 * 400, "{white} white pixels");
    assert!(pixels.pixels().iter().all(|pixel| pixel.alpha() == 255));
}

/// Paints an element of SVG, read from its text alone.
fn paint_element(pixels: &mut Pixmap, element: &str, scale: f32) {
    let attribute = |name: &str| {
        let start = element.find(&format!(" {name}=\""))? + name.len() + 3;
        element[start..].split('"').next()
    };
    let numbers = |text: &str| -> Vec<f32> {
        text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    };
    let number = |name: &str| attribute(name).map(|text| numbers(text)[0]);
    let mut path = PathBuilder::new();
    match element.split(' ').next().expect("a name") {
        "rect" => {
            let [x, y, width, height] =
                ["x", "y", "width", "height"].map(|name| number(name).expect(name));
            path.push_rect(tiny_skia::Rect::from_xywh(x, y, width, height).expect("a rectangle"));
        }
        "circle" => {
            let [x, y, radius] = ["cx", "cy", "r"].map(|name| number(name).expect(name));
            path.push_circle(x, y, radius);
        }
        "path" => {
            let steps = attribute("d").expect("a path");
            let starts: Vec<usize> =
                steps.char_indices().filter(|(_, c)| c.is_alphabetic()).map(|(at, _)| at).collect();
            for (index, &at) in starts.iter().enumerate() {
                let end = starts.get(index + 1).copied().unwrap_or(steps.len());
                match (&steps[at..=at], &numbers(&steps[at + 1..end])[..]) {
                    ("M", &[x, y]) => path.move_to(x, y),
                    ("L", &[x, y]) => path.line_to(x, y),
                    ("Q", &[a, b, x, y]) => path.quad_to(a, b, x, y),
                    ("C", &[a, b, c, d, x, y]) => path.cubic_to(a, b, c, d, x, y),
                    ("Z", []) => path.close(),
                    (other, _) => panic!("{other} in {steps}"),
                }
            }
        }
        other => panic!("{other} is no element"),
    }
    let (fill, stroke) = (attribute("fill").expect("a fill"), attribute("stroke"));
    let colour = u32::from_str_radix(&stroke.unwrap_or(fill)[1..], 16).expect("a colour");
    let [_, red, green, blue] = colour.to_be_bytes();
    let opacity = number("fill-opacity").unwrap_or(1.0);
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (255.0 * opacity).round() as u8);
    let (path, scale) = (path.finish().expect("a path"), Transform::from_scale(scale, scale));
    match number("stroke-width") {
        None => pixels.fill_path(&path, &paint, tiny_skia::FillRule::Winding, scale, None),
        Some(width) => {
            let line_join = tiny_skia::LineJoin::Round;
            let stroke = tiny_skia::Stroke { width, line_join, ..Default::default() };
            pixels.stroke_path(&path, &paint, &stroke, scale, None);
        }
    }
}

#[test]
fn both_files_show_the_same() {
    let directory = common::Directory::new("both_files_show_the_same");
    let figure = Figure::new(vec![panel().series(curve(Colour::BLUE))]);
    let [svg, png] = export::figure::write(directory.path(), "kl", &figure).expect("written");
    let text = std::fs::read_to_string(svg).expect("readable");
    let written = Pixmap::decode_png(&std::fs::read(png).expect("readable")).expect("a PNG");
    let mut again = Pixmap::new(written.width(), written.height()).expect("not empty");
    let elements: Vec<&str> = text.split('<').filter(|part| part.ends_with("/>")).collect();
    assert!(elements.len() > 20, "{} elements", elements.len());
    for element in elements {
        paint_element(&mut again, element, export::figure::PNG_SCALE);
    }
    // Rounding of written coordinates may move an edge by a shade.
    let different = written
        .data()
        .iter()
        .zip(again.data())
        .filter(|(one, other)| one.abs_diff(**other) > 24)
        .count();
    assert!(
        different < written.data().len() / 1000,
        "{different} of {} differ",
        written.data().len()
    );
}

#[test]
fn panels_on_their_own_have_the_size_of_one_panel() {
    let figure = Figure::new(vec![panel().series(curve(Colour::BLUE)), panel()])
        .with_panel_size(300.0, 200.0);
    let sizes: Vec<_> =
        figure.draw_panels().expect("drawn").iter().map(|drawing| drawing.size()).collect();
    assert_eq!(sizes, [(300.0, 200.0); 2]);
    assert_eq!(figure.draw().expect("drawn").size(), (600.0, 200.0));
    let stacked = figure.with_columns(1).draw().expect("drawn");
    assert_eq!(stacked.size(), (300.0, 400.0));
}

#[test]
fn error_bars_markers_and_strokes_change_what_is_seen() {
    let seen = |series: Series| {
        let unlabelled = Series { label: String::new(), ..series };
        let panel = panel().y_limits(0.01, 100.0).series(unlabelled);
        count(&pixels(&Figure::new(vec![panel]), 2.0), Colour::BLUE)
    };
    let plain = seen(curve(Colour::BLUE));
    let spread = Spread {
        lower: curve(Colour::BLUE).points.iter().map(|point| point.1 / 3.0).collect(),
        upper: curve(Colour::BLUE).points.iter().map(|point| point.1 * 3.0).collect(),
    };
    assert!(seen(curve(Colour::BLUE).with_spread(spread)) > plain + 300);
    assert!(seen(curve(Colour::BLUE).with_marker(Marker::Square)) > plain + 300);
    let dashed = seen(curve(Colour::BLUE).with_stroke(Stroke::Dashed));
    assert!(dashed * 10 < plain * 9 && dashed * 10 > plain * 3, "{dashed} of {plain}");
    assert_eq!(seen(curve(Colour::BLUE).with_stroke(Stroke::Absent)), 0);
}

#[test]
fn nothing_is_drawn_outside_the_limits() {
    let wild = Series::line("", Colour::VERMILION, vec![(1.0, 1e-9), (2.0, 1e9), (3.0, 1e-9)]);
    let panel = panel().x_limits(1.0, 3.0).y_limits(0.1, 10.0).series(wild);
    let pixels = pixels(&Figure::new(vec![panel]), 1.0);
    let reddish = |x: u32, y: u32| {
        pixels.pixel(x, y).is_some_and(|pixel| pixel.red() > pixel.blue().saturating_add(80))
    };
    let rows: Vec<u32> = (0..300).filter(|&y| (0..380).any(|x| reddish(x, y))).collect();
    assert!(rows.len() > 150, "the curve crosses the panel");
    assert!(rows[0] >= 32 && rows[rows.len() - 1] <= 258, "{rows:?}");
}

#[test]
fn values_that_cannot_be_shown_are_left_out() {
    let broken =
        vec![(1.0, 1.0), (2.0, f64::NAN), (3.0, 0.0), (4.0, f64::INFINITY), (5.0, 2.0), (6.0, 3.0)];
    let spread = Spread { lower: vec![0.0; 6], upper: vec![f64::INFINITY; 6] };
    let series = Series::line("x", Colour::BLUE, broken).with_spread(spread);
    let pixels = pixels(&Figure::new(vec![panel().series(series)]), 1.0);
    assert!(count(&pixels, Colour::BLUE) > 20);
}

#[test]
fn heat_maps_and_scatter_plots_are_seen() {
    let density =
        Density::of(((-1.0, 1.0), 30), ((-1.0, 1.0), 20), |x, y| (-4.0 * (x * x + y * y)).exp());
    assert_eq!((density.rows.len(), density.rows[0].len()), (20, 30));
    let cloud = (0..50).map(|k| (f64::from(k % 7), f64::from(k % 11))).collect();
    let figure = Figure::new(vec![
        Panel::new("map").density(density.with_label("p")),
        Panel::new("cloud")
            .series(Series::scatter("data", Colour::VERMILION, cloud).with_marker(Marker::Disc)),
    ]);
    let pixels = pixels(&figure, 1.0);
    assert!(count(&pixels, Colour::new(10, 18, 52)) > 100);
    assert!(count(&pixels, Colour::VERMILION) > 300);
}

#[test]
fn what_cannot_be_drawn_is_refused_by_name() {
    let Err(error) = Figure::new(vec![]).draw() else { panic!("nothing was drawn") };
    assert!(error.to_string().contains("no panels"), "{error}");
    let short = curve(Colour::BLUE).with_spread(Spread { lower: vec![1.0], upper: vec![2.0] });
    let upside_down = panel().y_limits(2.0, 1.0);
    let ragged = Density {
        rows: vec![vec![1.0, 2.0], vec![1.0]],
        x_range: (0.0, 1.0),
        y_range: (0.0, 1.0),
        ..Density::default()
    };
    for (panel, words) in [
        (panel().series(short), "a & <b>"),
        (upside_down, "`Title`"),
        (Panel::new("ragged").density(ragged), "`ragged`"),
    ] {
        let Err(error) = Figure::new(vec![panel]).draw() else { panic!("{words} was drawn") };
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_tiny_figure_with_a_large_legend_is_still_drawn() {
    let panel = (0..12).fold(panel(), |panel, _| panel.series(curve(Colour::SKY)));
    for legend in [LegendPosition::Automatic, LegendPosition::Below, LegendPosition::Absent] {
        let figure = Figure::new(vec![panel.clone().legend(legend)]).with_panel_size(60.0, 40.0);
        assert_eq!(figure.draw().expect("drawn").size(), (60.0, 40.0));
    }
}

#[test]
fn equal_axes_make_circles_round() {
    let angles = (0..=360).map(|degree| f64::from(degree).to_radians());
    let circle = Series::line("", Colour::VERMILION, angles.map(|a| (a.cos(), a.sin())).collect());
    let extent = |panel: Panel| {
        let pixels = pixels(&Figure::new(vec![panel.series(circle.clone())]), 1.0);
        let red = |x, y| {
            pixels.pixel(x, y).is_some_and(|pixel| pixel.red() > pixel.blue().saturating_add(80))
        };
        let columns = (0..380).filter(|&x| (0..300).any(|y| red(x, y))).count();
        let rows = (0..300).filter(|&y| (0..380).any(|x| red(x, y))).count();
        columns.abs_diff(rows)
    };
    let panel = Panel::new("").x_limits(-2.0, 2.0).y_limits(-1.5, 1.5);
    assert!(extent(panel.clone().equal_axes()) <= 2);
    assert!(extent(panel.x_limits(-4.0, 4.0)) > 20);
}
