//! Self-contained HTML pages, put together from blocks: sentences, claims, figures, tables, settings.
//!
//! ```
//! use zhat_report::{Claim, Decision, page::Page};
//!
//! let html = Page::new("Ring model")
//!     .lead("Four ways to train one parameter.")
//!     .section("Claims")
//!     .claims(&[Claim::new("Persistence helps.", "Sign test.", "0.02 against 0.05.", Decision::Holds)])
//!     .footer("zhat 0.1.0")
//!     .to_html();
//! assert!(html.contains("Persistence helps."));
//! ```

mod block;
mod experiment;
mod html;

use indexmap::IndexMap;

use crate::{
    error::ReportError,
    figure::{Figure, Panel},
    record::Claim,
    setting::Setting,
    table::Table,
};

/// A page in the making. Every text is escaped; nothing on the page is loaded from elsewhere, and it needs no scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    title: String,
    lead: Option<String>,
    blocks: Vec<String>,
    footer: Option<String>,
    figures: usize,
    sections: Vec<String>,
    with_contents: bool,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// The sentence below the title.
    pub fn lead(self, text: impl Into<String>) -> Self {
        Self { lead: Some(text.into()), ..self }
    }

    /// With links to the sections below the lead.
    pub fn with_contents(self) -> Self {
        Self { with_contents: true, ..self }
    }

    /// A heading; the blocks after it belong to it.
    pub fn section(mut self, title: &str) -> Self {
        self.sections.push(title.into());
        let number = self.sections.len();
        self.element(&format!("h2 id=\"section-{number}\""), title)
    }

    /// A smaller heading within a section.
    pub fn subsection(self, title: &str) -> Self {
        self.element("h3", title)
    }

    /// A paragraph.
    pub fn text(self, text: &str) -> Self {
        self.element("p", text)
    }

    /// A paragraph that must not be overlooked.
    pub fn notice(self, text: &str) -> Self {
        self.element("p class=\"notice\" role=\"note\"", text)
    }

    /// A paragraph that may be relied on, set off as a notice is.
    pub fn assurance(self, text: &str) -> Self {
        self.element("p class=\"notice good\" role=\"note\"", text)
    }

    /// Claims, each with whether it holds and what was measured.
    pub fn claims(self, claims: &[Claim]) -> Self {
        self.block(block::claims(claims))
    }

    /// A figure with its caption; its panels stand side by side where there is room, and else below each other.
    pub fn figure(mut self, figure: &Figure, caption: &str) -> Result<Self, ReportError> {
        self.figures += 1;
        let block = block::figure(self.figures, figure, caption)?;
        Ok(self.block(block))
    }

    /// Many small panels with one caption, each with its title above it, as many side by side as there is room for.
    pub fn grid(mut self, panels: &[Panel], caption: &str) -> Result<Self, ReportError> {
        self.figures += 1;
        let block = block::grid(self.figures, panels, caption)?;
        Ok(self.block(block))
    }

    /// A table with its caption, which may be empty.
    pub fn table(self, caption: &str, table: &Table) -> Self {
        self.block(block::table(caption, table))
    }

    /// Settings by name; those of a group get the group's name before theirs.
    pub fn settings(self, settings: &IndexMap<String, Setting>) -> Self {
        self.block(block::settings(settings))
    }

    /// The line at the end.
    pub fn footer(self, text: impl Into<String>) -> Self {
        Self { footer: Some(text.into()), ..self }
    }

    /// The document.
    pub fn to_html(&self) -> String {
        let title = html::plain(&self.title);
        let heading = html::marked(&self.title);
        let optional = |tag, text: &Option<String>| {
            text.as_deref().map(|text| html::element(tag, text) + "\n").unwrap_or_default()
        };
        let lead = optional("p class=\"lead\"", &self.lead);
        let contents =
            if self.with_contents { block::contents(&self.sections) } else { String::new() };
        let footer = optional("footer", &self.footer);
        let style = include_str!("style.css");
        let blocks = self.blocks.concat();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<h1>{heading}</h1>\n{lead}{contents}</header>\n{blocks}</main>\n{footer}</body>\n</html>\n"
        )
    }

    fn element(self, tag: &str, text: &str) -> Self {
        self.block(html::element(tag, text) + "\n")
    }

    fn block(mut self, block: String) -> Self {
        self.blocks.push(block);
        self
    }
}
