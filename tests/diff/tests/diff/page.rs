//! Tests of the Markdown, text and HTML output for the differences between the revisions of the workspace.

use std::collections::BTreeSet;

use expect_test::expect_file;
use mcp_exact_model::render::PageOptions;
use mcp_exact_model::{Diff, Status, diff, render};

use crate::revisions;

/// The difference between the first two revisions is rendered as the expected Markdown file.
#[test]
fn first_step_renders_as_markdown() {
    let (Some(from), Some(to)) = (revisions::get("2024-11-05"), revisions::get("2025-03-26"))
    else {
        panic!("the first two revisions are always there")
    };
    expect_file!["../golden/2025-03-26.md"].assert_eq(&render::markdown(&diff(from, to)));
}

/// Returns the names of the methods and definitions with this status.
fn names_with_status(diff: &Diff, status: Status) -> BTreeSet<&str> {
    let methods = diff.methods.iter().filter(|m| m.status == status);
    let definitions = diff.definitions.iter().filter(|d| d.status == status);
    let names = definitions.map(|d| d.name.as_str());
    names.chain(methods.map(|m| m.method.as_str())).collect()
}

/// The names that a difference adds are the names that the reverse difference removes, and the reverse.
#[test]
fn reverse_diff_mirrors_added_and_removed() {
    for pair in revisions::all().windows(2) {
        let (there, back) = (diff(&pair[0], &pair[1]), diff(&pair[1], &pair[0]));
        for (here, other) in [
            (Status::Added, Status::Removed),
            (Status::Removed, Status::Added),
            (Status::Named, Status::Unnamed),
        ] {
            assert_eq!(
                names_with_status(&there, here),
                names_with_status(&back, other)
            );
        }
    }
}

/// The difference between a revision and itself is empty.
#[test]
fn equal_revisions_do_not_differ() {
    for ir in revisions::all() {
        let same = diff(ir, ir);
        assert!(same.is_empty() && same.descriptions == 0, "{}", ir.revision);
    }
}

/// Text output contains colour escape sequences only on request.
#[test]
fn colours_are_optional() {
    for pair in revisions::all().windows(2) {
        let diff = diff(&pair[0], &pair[1]);
        assert!(!render::text(&diff, false).contains('\u{1b}'));
        assert!(render::text(&diff, true).contains('\u{1b}'));
    }
}

/// Returns the HTML page with all revisions.
fn render_page() -> String {
    let options = PageOptions {
        generator: "a test".to_owned(),
        ..PageOptions::default()
    };
    let page = render::html(revisions::all(), &options).expect("the templates are right");
    // Templates escape slashes as well.
    page.replace("&#x2f;", "/")
}

/// Returns the values of the attribute `name` of all elements of the page, in order.
fn attribute_values<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let start = format!(" {name}=\"");
    let values = page.split(start.as_str()).skip(1);
    values.filter_map(|rest| rest.split('"').next()).collect()
}

/// Ids on the HTML page are unique, links and ARIA attributes refer to existing ids, and the page loads no other
/// resources.
#[test]
fn page_links_and_ids_agree() {
    let page = render_page();
    assert_eq!(page, self::render_page(), "equal input, equal bytes");
    let ids = attribute_values(&page, "id");
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), known.len(), "an id stands twice");
    for name in ["aria-controls", "aria-labelledby"] {
        for id in attribute_values(&page, name) {
            assert!(
                known.contains(id),
                "{name} points to {id}, which is not there"
            );
        }
    }
    for link in attribute_values(&page, "href") {
        match link.strip_prefix('#') {
            Some(id) => assert!(known.contains(id), "{link} leads nowhere"),
            None => assert!(
                link.starts_with("https://modelcontextprotocol.io/specification/"),
                "{link} leaves the page"
            ),
        }
    }
    for outside in ["http:", "src=", "@import", "url(", "<link", "fetch("] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
    for tag in [
        "table", "tbody", "tr", "td", "th", "section", "button", "ul", "li", "div", "details",
        "select", "dl",
    ] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

/// The HTML page has a row for every method and every official definition.
#[test]
fn every_item_has_a_row() {
    let page = render_page();
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

/// Returns the HTML text of the row for a method or a type, with its details.
fn find_row<'p>(page: &'p str, id: &str) -> &'p str {
    let start = page
        .find(&format!("<tbody id=\"{id}\""))
        .expect("the row is there");
    let rest = &page[start..];
    &rest[..rest.find("</tbody>").expect("the row ends")]
}

/// The row of a method shows the changes of the types that its messages contain.
#[test]
fn methods_show_changes_of_their_types() {
    let page = render_page();
    let tools = find_row(&page, "method-tools/list");
    let step = tools
        .split("2025-06-18 → 2025-11-25")
        .nth(1)
        .expect("a step");
    let step = &step[..step.find("</section>").expect("the step ends")];
    for words in ["#type-Tool\"", "#type-Icon\"", "+ execution?"] {
        assert!(step.contains(words), "{words}\n{step}");
    }
}

/// The number of changes in the label of each cell equals the number of displayed lines.
#[test]
fn counts_match_displayed_lines() {
    let page = render_page();
    for body in page.split("<tbody ").skip(1) {
        let id = attribute_values(body, "aria-controls")[0];
        for cell in body
            .split("<td")
            .skip(1)
            .filter(|cell| cell.contains("data-step=\""))
        {
            let step = attribute_values(cell, "data-step")[0];
            let Some(section) = body
                .split(&format!("<section data-step=\"{step}\">"))
                .nth(1)
            else {
                continue;
            };
            let section = &section[..section.find("</section>").expect("the step ends")];
            let label = attribute_values(cell, "aria-label")
                .first()
                .copied()
                .unwrap_or_default();
            let counted = label
                .split_whitespace()
                .zip(label.split_whitespace().skip(1));
            let counted =
                counted.filter(|(_, word)| word.starts_with("change") && *word != "changed");
            for (number, _) in counted {
                if let Ok(number) = number.parse::<usize>() {
                    assert_eq!(section.matches("<li>").count(), number, "{id} {label}");
                }
            }
        }
    }
}

/// The legend explains every colour class that the page uses.
#[test]
fn colours_match_compatibilities() {
    let page = render_page();
    let legend = page.split("id=\"legend\"").nth(1).expect("a legend");
    let legend = &legend[..legend.find("</details>").expect("it ends")];
    let known: BTreeSet<&str> = legend
        .split("class=\"badge ")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(known.len(), 5);
    for rest in page.split("class=\"badge ").skip(1) {
        let class = rest.split('"').next().unwrap_or_default();
        assert!(known.contains(class), "{class} is not in the legend");
    }
    for rest in page.split("<td class=\"").skip(1) {
        let class = rest.split('"').next().unwrap_or_default();
        assert!(known.contains(class), "{class} is not in the legend");
    }
}

/// A page for two revisions contains only these revisions.
#[test]
fn two_revisions_have_a_separate_page() {
    let revisions = revisions::all();
    let options = PageOptions::default();
    let page = render::html(&revisions[1..3], &options).expect("the templates are right");
    assert!(page.contains("<title>Model Context Protocol: from 2025-03-26 to 2025-06-18</title>"));
    assert!(!page.contains("2024-11-05"));
}
