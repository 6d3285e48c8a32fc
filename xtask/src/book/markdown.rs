//! What the documentation site needs of Markdown: links, headings and code spans outside code blocks. Takes the text of a
//! page, returns parts of it or the text with some of them replaced.

use std::collections::BTreeSet;

/// A part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text, including the text of links and the marks around their targets.
    Text(&'t str),
    /// Code with its backticks; true if the code is the whole text of a link.
    Code(&'t str, bool),
    /// Target of a link.
    Target(&'t str),
    /// A line of a code block, or one that begins or ends the block.
    Block(&'t str),
}

/// Returns the parts of a text, in order; the lines keep their ends.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut fence = None;
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        let ticks = start.len() - start.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => {
                fence = Some(ticks);
                parts.push(Part::Block(line));
            }
            None => split_line(line, &mut parts),
            Some(open) => {
                if ticks >= open && start.trim_start_matches('`').trim().is_empty() {
                    fence = None;
                }
                parts.push(Part::Block(line));
            }
        }
    }
    parts
}

/// Adds the parts of a line outside code blocks.
fn split_line<'t>(line: &'t str, parts: &mut Vec<Part<'t>>) {
    let mut rest = line;
    while let Some(at) = rest.find(['`', ']']) {
        let (before, from) = rest.split_at(at);
        if let Some(target) = from.strip_prefix("](") {
            let Some(length) = target.find(')') else {
                break;
            };
            parts.push(Part::Text(&rest[..at + 2]));
            parts.push(Part::Target(&target[..length]));
            rest = &target[length..];
            continue;
        }
        let ticks = from.len() - from.trim_start_matches('`').len();
        let (mark, after) = from.split_at(ticks.max(1));
        let Some(length) = after.find(mark).filter(|_| ticks > 0) else {
            parts.push(Part::Text(&rest[..at + mark.len()]));
            rest = after;
            continue;
        };
        let (code, end) = from.split_at(length + 2 * mark.len());
        let is_link = before.ends_with('[') && end.starts_with("](");
        parts.push(Part::Text(before));
        parts.push(Part::Code(code, is_link));
        rest = end;
    }
    parts.push(Part::Text(rest));
}

/// Returns the targets of the links in a text, in order.
pub fn links(text: &str) -> Vec<String> {
    let targets = parts(text).into_iter().filter_map(|part| match part {
        Part::Target(target) => Some(target.to_owned()),
        _ => None,
    });
    targets.collect()
}

/// Returns a text with other targets of its links.
pub fn map_links(text: &str, mut change: impl FnMut(&str) -> String) -> String {
    let mut changed = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Target(target) => changed += &change(target),
            Part::Text(text) | Part::Code(text, _) | Part::Block(text) => changed += text,
        }
    }
    changed
}

/// Returns the ids that mdBook and GitHub give the headings of a text.
pub fn headings(text: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut line = String::new();
    for part in parts(text) {
        match part {
            // Backticks do not count in an id.
            Part::Text(text) | Part::Code(text, _) => line += text,
            Part::Target(_) | Part::Block(_) => {}
        }
        if !line.ends_with('\n') {
            continue;
        }
        let title = line.trim_start_matches('#');
        if title.len() < line.len() && title.starts_with(' ') {
            let id = heading_id(title);
            let numbered = (1..).map(|number| format!("{id}-{number}"));
            let mut names = [id.clone()].into_iter().chain(numbered);
            ids.extend(names.find(|name| !ids.contains(name)));
        }
        line.clear();
    }
    ids
}

/// Returns the id of a heading: letters in lower case, digits, `_` and `-`, with a hyphen for each space.
fn heading_id(title: &str) -> String {
    let letters = title.trim().chars().filter_map(|letter| match letter {
        letter if letter.is_alphanumeric() || letter == '_' || letter == '-' => Some(letter),
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code spans and code blocks have no links, and code that is the text of a link is known as such.
    #[test]
    fn code_has_no_links() {
        let text = "a [`b`](c) `[d](e)` ``f`` ` [g](h)\n```text\n[i](j)\n```\n";
        assert_eq!(links(text), ["c", "h"]);
        let code = parts(text).into_iter().filter_map(|part| match part {
            Part::Code(code, is_link) => Some((code, is_link)),
            _ => None,
        });
        let expected = [("`b`", true), ("`[d](e)`", false), ("``f``", false)];
        assert_eq!(code.collect::<Vec<_>>(), expected);
        assert_eq!(map_links(text, str::to_owned), text);
    }

    /// Ids of headings are those of mdBook; a heading that is there again gets a number.
    #[test]
    fn headings_have_ids() {
        let text = "# RES.not-found\n## `a` and [b](c)?\n## `a` and b\n```sh\n# no heading\n```\n#5 is none\n";
        let expected = ["a-and-b", "a-and-b-1", "resnot-found"];
        assert_eq!(headings(text).into_iter().collect::<Vec<_>>(), expected);
    }
}
