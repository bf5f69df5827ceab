//! The HTML of each kind of block.

use indexmap::IndexMap;

use super::html::{marked, plain};
use crate::{
    error::ReportError,
    figure::Figure,
    markup::escaped,
    record::{Claim, Decision},
    setting::Setting,
    table::{Align, Table},
};

/// Links to the sections.
pub(super) fn contents(sections: &[String]) -> String {
    let mut html = String::from("<nav aria-label=\"Contents\"><ul>\n");
    for (index, title) in sections.iter().enumerate() {
        let number = index + 1;
        html.push_str(&format!("<li><a href=\"#section-{number}\">{}</a></li>\n", marked(title)));
    }
    html + "</ul></nav>\n"
}

pub(super) fn claims(claims: &[Claim]) -> String {
    let mut html = String::from("<ol class=\"claims\">\n");
    for claim in claims {
        let class = match claim.decision {
            Decision::Holds => "holds",
            Decision::DoesNotHold => "fails",
            Decision::NotToldApart => "open",
        };
        html.push_str(&format!(
            "<li><span class=\"badge {class}\">{}</span><div><p class=\"claim\">{}</p><p class=\"measured\">{}</p>\
             <p class=\"measured\">Test: {}</p></div></li>\n",
            claim.decision,
            marked(&claim.claim),
            marked(&claim.measured),
            marked(&claim.test)
        ));
    }
    html + "</ol>\n"
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
    for (index, (drawing, panel)) in drawings.iter().zip(&figure.panels).enumerate() {
        // The outlines cannot be read aloud, so the panel says what it is.
        let labels = panel.series.iter().map(|series| series.label.clone());
        let against = format!("{} against {}", panel.y_label, panel.x_label);
        let spoken = joined("; ", [panel.title.clone(), against, joined(", ", labels)]);
        let spoken = plain(&spoken);
        let svg = drawing.svg_with_prefix(&format!("figure{number}-{index}-"));
        let (width, height) = drawing.size();
        let sized = format!("<svg width=\"{width}\" height=\"{height}\"");
        let scaled =
            format!("<svg role=\"img\" aria-label=\"{spoken}\" viewBox=\"0 0 {width} {height}\"");
        html.push_str(&svg.replacen(&sized, &scaled, 1));
    }
    html.push_str(&format!(
        "</div>\n<figcaption><b>Figure {number}.</b> {}</figcaption>\n</figure>\n",
        marked(caption)
    ));
    Ok(html)
}

/// The parts that are not empty, with something between them.
fn joined(between: &str, parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

pub(super) fn table(caption: &str, table: &Table) -> String {
    let class = |align: Align| {
        if align == Align::Right { " class=\"number\"" } else { "" }
    };
    let mut html = String::new();
    if !caption.is_empty() {
        // Outside of what scrolls: a caption of the table's own would be as wide as the table, or make it wider.
        html.push_str(&format!("<p class=\"caption\">{}</p>\n", marked(caption)));
    }
    html.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    for (header, align) in table.columns() {
        html.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(*align), marked(header)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in table.rows() {
        html.push_str("<tr>");
        for (index, (cell, (_, align))) in row.iter().zip(table.columns()).enumerate() {
            let (open, close) = if index == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
            html.push_str(&format!("<{open}{}>{}</{close}>", class(*align), marked(cell)));
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody>\n</table></div>\n"
}

pub(super) fn settings(settings: &IndexMap<String, Setting>) -> String {
    let mut html = String::from("<dl class=\"settings\">\n");
    for (name, value) in flattened("", settings) {
        html.push_str(&format!(
            "<div><dt>{}</dt><dd>{}</dd></div>\n",
            escaped(&name),
            escaped(&value)
        ));
    }
    html + "</dl>\n"
}

fn flattened(prefix: &str, settings: &IndexMap<String, Setting>) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    for (name, setting) in settings {
        let name = format!("{prefix}{name}");
        match setting {
            Setting::Group(group) => flat.extend(flattened(&format!("{name}."), group)),
            other => flat.push((name, other.shown())),
        }
    }
    flat
}
