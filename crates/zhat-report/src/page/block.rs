//! The HTML of each kind of block.

use indexmap::IndexMap;

use super::html::{element, marked, plain};
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
        // The outlines cannot be read aloud, so the panel says what it is.
        let labels = panel.series.iter().map(|series| series.label.clone());
        let against = format!("{} against {}", panel.y_label, panel.x_label);
        let spoken = joined("; ", [panel.title.clone(), against, joined(", ", labels)]);
        let spoken = plain(&spoken);
        let svg = drawing.svg();
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
    let row = |tag: fn(usize) -> &'static str, cells: Vec<&String>| {
        let cells = cells.into_iter().zip(table.columns()).enumerate();
        let cell = |(index, (text, (_, align))): (usize, (&String, &(String, Align)))| {
            let class = if *align == Align::Right { " class=\"number\"" } else { "" };
            element(&format!("{}{class}", tag(index)), text)
        };
        format!("<tr>{}</tr>", cells.map(cell).collect::<String>())
    };
    let headers = table.columns().iter().map(|(header, _)| header).collect();
    let mut html = String::new();
    if !caption.is_empty() {
        // Outside of what scrolls: a caption of the table's own would be as wide as the table, or make it wider.
        html = element("p class=\"caption\"", caption) + "\n";
    }
    html.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>");
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
