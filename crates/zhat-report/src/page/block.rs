//! The HTML of each kind of block.

use indexmap::IndexMap;

use super::html::{element, marked, plain};
use crate::{
    error::ReportError,
    figure::{Drawing, Figure, Panel},
    markup::escaped,
    record::{Claim, Decision},
    setting::Setting,
    table::{Align, Table},
};

/// A table of more columns than this has no room on a narrow screen.
const NARROW: usize = 3;

/// Links to the sections.
pub(super) fn contents(sections: &[String]) -> String {
    let link = |(title, number): (&String, usize)| {
        format!("<li><a href=\"#section-{number}\">{}</a></li>\n", marked(title))
    };
    let links: String = sections.iter().zip(1..).map(link).collect();
    format!("<nav aria-label=\"Contents\"><ul>\n{links}</ul></nav>\n")
}

pub(super) fn claims(claims: &[Claim]) -> String {
    let item = |Claim { claim, test, measured, decision }: &Claim| {
        let class = match decision {
            Decision::Holds => "holds",
            Decision::DoesNotHold => "fails",
            Decision::NotToldApart => "open",
        };
        format!(
            "<li><span class=\"badge {class}\">{decision}</span><div><p class=\"claim\">{}</p><p class=\"measured\">{}</p>\
             <p class=\"measured\">Test: {}</p></div></li>\n",
            marked(claim),
            marked(measured),
            marked(test)
        )
    };
    format!("<ol class=\"claims\">\n{}</ol>\n", claims.iter().map(item).collect::<String>())
}

pub(super) fn figure(number: usize, figure: &Figure, caption: &str) -> Result<String, ReportError> {
    let drawings = figure.draw_panels()?;
    // Four panels are two rows of two; others in threes.
    let columns = match drawings.len() {
        4 => 2,
        count => count.min(3),
    };
    let columns = figure.columns.map_or(columns, |wanted| wanted.clamp(1, 3));
    let mut html = format!("<figure>\n<div class=\"panels panels-{columns}\">\n");
    for (drawing, panel) in drawings.iter().zip(&figure.panels) {
        html.push_str(&scaled(drawing, panel));
    }
    Ok(html + &end_of_figure(number, caption))
}

/// Small panels, whose titles are text of the page: columns may have any name, and the font of drawings has few letters.
pub(super) fn grid(number: usize, panels: &[Panel], caption: &str) -> Result<String, ReportError> {
    let untitled = panels.iter().map(|panel| Panel { title: String::new(), ..panel.clone() });
    let drawings = Figure::new(untitled.collect()).with_panel_size(190.0, 120.0).draw_panels()?;
    // A few do not need the whole width of the page.
    let width = 260 * panels.len().clamp(1, 5);
    let mut html =
        format!("<figure>\n<div class=\"panels panels-small\" style=\"max-width: {width}px\">\n");
    for (drawing, panel) in drawings.iter().zip(panels) {
        let svg = scaled(drawing, panel);
        let title = element("p", &panel.title);
        html.push_str(&format!("<div title=\"{}\">{title}{svg}</div>", plain(&panel.title)));
    }
    Ok(html + &end_of_figure(number, caption))
}

/// A drawing that scales with the page; its outlines cannot be read aloud, so it says what it is.
fn scaled(drawing: &Drawing, panel: &Panel) -> String {
    let labels = panel.series.iter().map(|series| series.label.clone());
    let against = match [&panel.y_label, &panel.x_label] {
        [y, x] if y.is_empty() && x.is_empty() => String::new(),
        [y, x] => format!("{y} against {x}"),
    };
    let spoken = joined("; ", [panel.title.clone(), against, joined(", ", labels)]);
    let spoken = plain(&spoken);
    let (width, height) = drawing.size();
    let sized = format!("<svg width=\"{width}\" height=\"{height}\"");
    let scaled =
        format!("<svg role=\"img\" aria-label=\"{spoken}\" viewBox=\"0 0 {width} {height}\"");
    drawing.svg().replacen(&sized, &scaled, 1)
}

fn end_of_figure(number: usize, caption: &str) -> String {
    let caption = marked(caption);
    format!("</div>\n<figcaption><b>Figure {number}.</b> {caption}</figcaption>\n</figure>\n")
}

/// The parts that are not empty, with something between them.
fn joined(between: &str, parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

pub(super) fn table(caption: &str, table: &Table) -> String {
    let wide = table.columns().len() > NARROW;
    let row = |tag: fn(usize) -> &'static str, cells: Vec<&String>| {
        let cells = cells.into_iter().zip(table.columns()).enumerate();
        let cell = |(index, (text, (header, align))): (usize, (&String, &(String, Align)))| {
            let class = if *align == Align::Right { " class=\"number\"" } else { "" };
            let tag = tag(index);
            // On a narrow screen every cell of a wide table stands in a line of its own, beside its header.
            let label = match wide && !header.is_empty() && !text.is_empty() && !tag.contains("col")
            {
                true => format!(" data-label=\"{}\"", plain(header)),
                false => String::new(),
            };
            element(&format!("{tag}{class}{label}"), text)
        };
        format!("<tr>{}</tr>", cells.map(cell).collect::<String>())
    };
    let headers = table.columns().iter().map(|(header, _)| header).collect();
    let mut html = String::new();
    if !caption.is_empty() {
        // Outside of what scrolls: a caption of the table's own would be as wide as the table, or make it wider.
        html = element("p class=\"caption\"", caption) + "\n";
    }
    let class = if wide { " class=\"wide\"" } else { "" };
    html.push_str(&format!("<div class=\"scroll\" tabindex=\"0\"><table{class}>\n<thead>"));
    html.push_str(&row(|_| "th scope=\"col\"", headers));
    html.push_str("</thead>\n<tbody>\n");
    for cells in table.rows() {
        let tag = |index| if index == 0 { "th scope=\"row\"" } else { "td" };
        html.push_str(&(row(tag, cells.iter().collect()) + "\n"));
    }
    html + "</tbody>\n</table></div>\n"
}

pub(super) fn settings(settings: &IndexMap<String, Setting>) -> String {
    format!("<dl class=\"settings\">\n{}</dl>\n", named_settings("", settings))
}

fn named_settings(prefix: &str, settings: &IndexMap<String, Setting>) -> String {
    let named = |(name, setting): (&String, &Setting)| match setting {
        Setting::Group(group) => named_settings(&format!("{prefix}{name}."), group),
        other => {
            let (name, value) = (escaped(name), escaped(&other.shown()));
            format!("<div><dt>{}{name}</dt><dd>{value}</dd></div>\n", escaped(prefix))
        }
    };
    settings.iter().map(named).collect()
}
