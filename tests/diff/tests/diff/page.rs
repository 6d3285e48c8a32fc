//! What the renderers make of the real revisions.

use std::collections::BTreeSet;

use expect_test::expect_file;
use mcp_exact_model::{Diff, Status, diff, render};

use crate::revisions;

#[test]
fn the_first_step_as_markdown() {
    let (Some(from), Some(to)) = (revisions::get("2024-11-05"), revisions::get("2025-03-26"))
    else {
        panic!("the first two revisions are always there")
    };
    expect_file!["../golden/2025-03-26.md"].assert_eq(&render::markdown(&diff(from, to)));
}

/// The methods and definitions of one status.
fn of_status(diff: &Diff, status: Status) -> BTreeSet<&str> {
    let methods = diff.methods.iter().filter(|m| m.status == status);
    let definitions = diff.definitions.iter().filter(|d| d.status == status);
    let names = definitions.map(|d| d.name.as_str());
    names.chain(methods.map(|m| m.method.as_str())).collect()
}

#[test]
fn what_comes_on_the_way_there_goes_on_the_way_back() {
    for pair in revisions::all().windows(2) {
        let (there, back) = (diff(&pair[0], &pair[1]), diff(&pair[1], &pair[0]));
        for (here, other) in [
            (Status::Added, Status::Removed),
            (Status::Removed, Status::Added),
            (Status::Named, Status::Unnamed),
        ] {
            assert_eq!(of_status(&there, here), of_status(&back, other));
        }
    }
}

#[test]
fn nothing_differs_from_itself() {
    for ir in revisions::all() {
        let same = diff(ir, ir);
        assert!(same.is_empty() && same.descriptions == 0, "{}", ir.revision);
    }
}

#[test]
fn colours_only_when_asked_for() {
    for pair in revisions::all().windows(2) {
        let diff = diff(&pair[0], &pair[1]);
        assert!(!render::text(&diff, false).contains('\u{1b}'));
        assert!(render::text(&diff, true).contains('\u{1b}'));
    }
}

/// The values of an attribute, in order.
fn attributes<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let start = format!(" {name}=\"");
    let values = page.split(start.as_str()).skip(1);
    values.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_page_hangs_together() {
    let page = render::html(revisions::all());
    assert_eq!(
        page,
        render::html(revisions::all()),
        "equal input, equal bytes"
    );
    let ids = attributes(&page, "id");
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), known.len(), "an id stands twice");
    for name in ["aria-controls", "aria-labelledby"] {
        for id in attributes(&page, name) {
            assert!(
                known.contains(id),
                "{name} points to {id}, which is not there"
            );
        }
    }
    for link in attributes(&page, "href") {
        let id = link
            .strip_prefix('#')
            .unwrap_or_else(|| panic!("{link} leaves the page"));
        assert!(known.contains(id), "{link} leads nowhere");
    }
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
    for tag in [
        "table", "tbody", "tr", "td", "th", "section", "button", "ul", "li", "div",
    ] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn each_method_and_type_has_a_row() {
    let page = render::html(revisions::all());
    for ir in revisions::all() {
        let methods = ir
            .methods
            .iter()
            .map(|m| format!("id=\"method-{}\"", m.method));
        let official = ir.definitions.iter().filter(|d| d.official);
        let types = official.map(|d| format!("id=\"type-{}\"", d.name));
        for id in methods.chain(types) {
            assert!(page.contains(&id), "{id}");
        }
    }
}
