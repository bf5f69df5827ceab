//! Pages: everything is there, everything is escaped, and nothing is loaded from elsewhere.

mod common;

use common::experiment;
use zhat_report::{
    Align, Claim, Decision, Table, export,
    figure::{Colour, Figure, LegendPosition, Panel, Scale, Series},
    page::Page,
};

fn figure() -> Figure {
    let points = vec![(1.0, 3.0), (2.0, 1.0), (4.0, 0.5)];
    let panel = Panel::new("\"Error\"").x("step", Scale::Log).y("p_{θ}", Scale::Log);
    Figure::new(vec![panel.clone().series(Series::line("<arm>", Colour::BLUE, points)), panel])
}

fn page() -> String {
    Page::of_experiment("Ring <model>", "A lead.", &experiment(), [(&figure(), "Median & worst.")])
        .expect("drawn")
        .to_html()
}

#[test]
fn the_page_of_an_experiment_has_all_its_parts() {
    let html = page();
    for part in [
        "<h1>Ring &lt;model&gt;</h1>",
        "A lead.",
        "It converges.",
        "It does not: 0.3 and infinity.",
        "<span class=\"badge fails\">does not hold</span>",
        "0 of 1 claim hold",
        "Median &amp; worst.",
        "<th scope=\"row\" data-label=\"arm\">z</th>",
        "<dt>rate</dt><dd>0.1</dd>",
        "zhat 0.1.0",
        "1.5 s on 2 threads",
    ] {
        assert!(html.contains(part), "no {part}");
    }
    assert_eq!(html.matches("<svg").count(), 2);
    assert!(!html.contains("interrupted"));
}

#[test]
fn an_interrupted_experiment_says_so_and_how_many_runs_it_shows() {
    let mut experiment = experiment();
    experiment.interrupted = true;
    let html = Page::of_experiment("t", "l", &experiment, []).expect("no figures").to_html();
    assert!(html.contains("interrupted") && html.contains("over 2 runs"));
}

#[test]
fn no_text_can_become_a_tag() {
    let evil = "<script>alert('x')</script>\" onload=\"y&_{<b>}";
    let mut table = Table::new([(evil, Align::Left)]);
    table.row([evil]);
    let mut experiment = experiment();
    experiment.settings.insert(evil.into(), evil.into());
    let panel = Panel::new(evil)
        .x(evil, Scale::Linear)
        .y(evil, Scale::Linear)
        .series(Series::line(evil, Colour::BLUE, vec![]));
    let html = Page::new(evil)
        .lead(evil)
        .with_contents()
        .section(evil)
        .subsection(evil)
        .text(evil)
        .notice(evil)
        .claims(&[Claim::new(evil, evil, evil, Decision::Holds)])
        .table(evil, &table)
        .settings(&experiment.settings)
        .footer(evil)
        .figure(&Figure::new(vec![panel]), evil)
        .expect("drawn")
        .to_html();
    assert!(!html.contains("<script") && !html.contains("<b>}") && !html.contains("\" onload"));
    // Title twice, lead, section and its link, subsection, text, notice, claim thrice, table thrice, setting twice, footer, caption, spoken label four times.
    assert_eq!(html.matches("&lt;script&gt;").count(), 22);
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let html = page().replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for reference in ["http", "src=", "url(h", "@import", "<script", "<link", "xlink:href=\"h"] {
        assert!(!html.contains(reference), "found {reference}");
    }
}

#[test]
fn contents_lead_to_the_sections() {
    let page = Page::new("t").section("One & only").subsection("part").section("Two");
    assert!(!page.to_html().contains("<nav"));
    let html = page.with_contents().to_html();
    for (number, title) in [(1, "One &amp; only"), (2, "Two")] {
        assert!(html.contains(&format!("<a href=\"#section-{number}\">{title}</a>")));
        assert!(html.contains(&format!("<h2 id=\"section-{number}\">{title}</h2>")));
    }
    assert!(html.contains("<h3>part</h3>"));
}

#[test]
fn figures_scale_with_the_page_and_are_described() {
    let html = page();
    assert!(html.contains("<svg role=\"img\" aria-label=\"&quot;Error&quot;; pθ against step; &lt;arm&gt;\" viewBox=\"0 0 380 300\""));
    assert!(!html.contains("<svg width="));
}

#[test]
fn a_cell_of_a_wide_table_knows_its_header_and_one_of_a_narrow_table_need_not() {
    let table = |columns: usize| {
        let headers = (0..columns).map(|column| (format!("<{column}>"), Align::Right));
        let mut table = Table::new(headers);
        table.row((0..columns).map(|column| column.to_string()));
        Page::new("Tables").table("", &table).to_html()
    };
    let wide = table(5);
    assert!(wide.contains("<table class=\"wide\">"));
    assert!(wide.contains("<td class=\"number\" data-label=\"&lt;4&gt;\">4</td>"), "{wide}");
    assert!(table(3).contains("<table>") && !table(3).contains("data-label=\""));
}

#[test]
fn small_panels_stand_in_a_grid_under_titles_that_are_text() {
    let panel = |name: &str| {
        let series = Series::line("data", Colour::BLUE, vec![(0.0, 1.0), (1.0, 2.0)]);
        Panel::new(name).y_names(vec![]).series(series).legend(LegendPosition::Absent)
    };
    let panels = ["größe", "a < b", "重さ"].map(panel);
    let html = Page::new("Grid").grid(&panels, "Three.").expect("drawn").to_html();
    assert_eq!(html.matches("<svg role=\"img\"").count(), 3);
    for title in ["größe", "a &lt; b", "重さ"] {
        assert!(
            html.contains(&format!("<p>{title}</p><svg role=\"img\" aria-label=\"{title}; data\""))
        );
    }
    assert!(html.contains("<b>Figure 1.</b> Three."));
}

#[test]
fn what_may_be_relied_on_is_not_set_off_as_a_warning() {
    let html = Page::new("Verdict").assurance("Yes.").notice("No.").to_html();
    assert!(html.contains("<p class=\"notice good\" role=\"note\">Yes.</p>"));
    assert!(html.contains("<p class=\"notice\" role=\"note\">No.</p>"));
}

#[test]
fn a_page_is_written_as_one_file() {
    let directory = common::Directory::new("a_page_is_written_as_one_file");
    let path = directory.path().join("report.html");
    let page = Page::new("Fit").lead("A table.");
    export::page::write(&path, &page).expect("written");
    assert_eq!(std::fs::read_to_string(path).expect("readable"), page.to_html());
}
