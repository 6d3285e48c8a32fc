//! Search for tools by words: BM25 over names, texts and arguments of definitions.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use mcp_exact_wire::{JsonObject, JsonRef};

/// Weight of words in the name of a tool.
const IN_NAME: f64 = 3.0;
/// Weight of words in its title.
const IN_TITLE: f64 = 2.0;
/// Weight of words in its description, and in the names of its arguments.
const IN_TEXT: f64 = 1.0;
/// Weight of words in the descriptions of its arguments.
const IN_ARGUMENTS: f64 = 0.5;

/// Influence of repeated words, and of the length of a definition (Robertson and Zaragoza, "The Probabilistic Relevance Framework:
/// BM25 and Beyond").
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Maximum number of words of a query that tools are ranked by: the first ones that any tool has.
const MAX_WANTED: usize = 64;
/// Maximum number of words of one tool that are looked at.
const MAX_WORDS: usize = 1_000;
/// Maximum length of a text that is looked at, in characters.
const MAX_TEXT: usize = 20_000;

/// English words that say nothing about a tool: articles, pronouns, prepositions, conjunctions and auxiliary verbs.
static IGNORED: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "a about above after again against all am an and any are as at be because been before being below between both \
     but by can could did do does doing down during each few for from further had has have having he her here hers \
     him his how i if in into is it its itself just let me more most my no nor not now of off on once only or \
     other our out over own please s same shall she should so some somebody something such t than that the their them \
     then there these they this those through to too under until up us very was we were what when where which \
     while who whom why will with would you your"
    .split(' ')
    .collect()
});

/// Index of definitions of tools, which finds those that a few words describe.
///
/// ```
/// use mcp_exact_tool_schema::ToolIndex;
///
/// let tools = [
///     r#"{"name":"read_file","description":"Reads the text of a file.","inputSchema":{}}"#,
///     r#"{"name":"get_weather","description":"Returns the weather of a place.","inputSchema":{}}"#,
/// ];
/// let index = ToolIndex::new(&tools.map(|tool| tool.parse().expect("an object")));
/// assert_eq!(index.find("how is the weather in Paris", 5), [1]);
/// assert_eq!(index.find("reading files", 5), [0]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolIndex {
    /// Weights of the words of each tool, with their sum.
    tools: Vec<(HashMap<String, f64>, f64)>,
    /// Number of tools that have a word.
    frequencies: HashMap<String, usize>,
    /// Average sum of the weights of a tool's words.
    average: f64,
}

impl ToolIndex {
    /// Creates the index of definitions.
    pub fn new(definitions: &[JsonObject]) -> Self {
        let mut index = Self::default();
        for definition in definitions {
            let mut words = Words::default();
            let members = ["name", "title", "description", "inputSchema"];
            let [name, title, description, schema] = definition.view().find_each(members);
            words.add_value(IN_NAME, name);
            words.add_value(IN_TITLE, title);
            words.add_value(IN_TEXT, description);
            let schema = schema.and_then(|schema| schema.object());
            let arguments = schema.and_then(|schema| schema.find("properties")?.object());
            for (name, argument) in arguments.unwrap_or_default().iter() {
                if words.count >= MAX_WORDS {
                    break;
                }
                words.add(IN_TEXT, &name);
                let argument = argument.object();
                let description = argument.and_then(|argument| argument.find("description"));
                words.add_value(IN_ARGUMENTS, description);
            }
            for word in words.weights.keys() {
                *index.frequencies.entry(word.clone()).or_default() += 1;
            }
            let length = words.weights.values().sum();
            index.tools.push((words.weights, length));
        }
        let sum: f64 = index.tools.iter().map(|(_, length)| length).sum();
        index.average = sum / index.tools.len().max(1) as f64;
        index
    }

    /// Returns the places of the tools that have words of a query, at most `most`, the best ones first. Tools of equal rank keep
    /// their order.
    pub fn find(&self, query: &str, most: usize) -> Vec<usize> {
        let mut seen = HashSet::new();
        let wanted = words_of(query)
            .filter(|word| self.frequencies.contains_key(word) && seen.insert(word.clone()));
        let wanted: Vec<String> = wanted.take(MAX_WANTED).collect();
        let mut found: Vec<(usize, f64)> = self
            .tools
            .iter()
            .map(|tool| self.rank(&wanted, tool))
            .enumerate()
            .filter(|(_, rank)| *rank > 0.0)
            .collect();
        found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        found
            .into_iter()
            .take(most)
            .map(|(place, _)| place)
            .collect()
    }

    fn rank(&self, wanted: &[String], (words, length): &(HashMap<String, f64>, f64)) -> f64 {
        let count = self.tools.len() as f64;
        let rank = wanted.iter().map(|word| {
            let (Some(weight), Some(frequency)) = (words.get(word), self.frequencies.get(word))
            else {
                return 0.0;
            };
            let frequency = *frequency as f64;
            let rareness = ((count - frequency + 0.5) / (frequency + 0.5)).ln_1p();
            rareness * weight * (K1 + 1.0) / (weight + K1 * (1.0 - B + B * length / self.average))
        });
        rank.sum()
    }
}

/// Words of one tool with their weights.
#[derive(Default)]
struct Words {
    weights: HashMap<String, f64>,
    /// Number of words that were added.
    count: usize,
}

impl Words {
    fn add(&mut self, weight: f64, text: &str) {
        for word in words_of(text).take(MAX_WORDS - self.count) {
            *self.weights.entry(word).or_default() += weight;
            self.count += 1;
        }
    }

    /// Adds the words of a value, if it is a text.
    fn add_value(&mut self, weight: f64, text: Option<JsonRef<'_>>) {
        if let Some(text) = text.and_then(|text| text.as_str()) {
            self.add(weight, &text);
        }
    }
}

/// Returns the words of a text without their endings. A word ends where a lower-case letter is followed by an upper-case one, as in
/// `readFile`; of scripts without spaces each letter is a word.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for letter in text.chars().take(MAX_TEXT) {
        let is_letter = letter.is_alphanumeric();
        let is_alone = is_letter && has_no_spaces(letter);
        if !is_letter || is_alone || was_lower && letter.is_uppercase() {
            words.push(std::mem::take(&mut word));
        }
        if is_alone {
            words.push(letter.to_string());
        } else if is_letter {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words.push(word);
    let words = words.into_iter().filter(|word| !word.is_empty());
    words
        .filter(|word| !IGNORED.contains(word.as_str()))
        .map(|word| stem(&word))
}

/// Returns true if words of the letter's script are not separated by spaces: Chinese, Japanese, Thai and others.
fn has_no_spaces(letter: char) -> bool {
    matches!(
        letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
    )
}

/// Returns a word without the endings of English inflection, the same for `file`, `files`, `create`, `created` and `creating`.
fn stem(word: &str) -> String {
    let is_long = |rest: &&str| rest.len() >= 3 && rest.is_ascii();
    let stripped = match word {
        word if word.ends_with("ss") => word,
        word => {
            let plural = word
                .strip_suffix("ies")
                .filter(|rest| rest.len() >= 2 && rest.is_ascii());
            if let Some(rest) = plural {
                return format!("{rest}y");
            }
            word.strip_suffix('s').filter(is_long).unwrap_or(word)
        }
    };
    let endings = ["ing", "ed"].into_iter();
    let mut without = endings.filter_map(|ending| stripped.strip_suffix(ending).filter(is_long));
    let without = without.next().unwrap_or(stripped);
    let without = without.strip_suffix('e').filter(is_long).unwrap_or(without);
    without.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words end at separators and at capitals, and lose their endings.
    #[test]
    fn texts_have_words() {
        for (text, words) in [
            ("read_text_file", "read text fil"),
            ("getFileInfo HTTPServer", "get fil info httpserver"),
            ("creates, created; creating", "creat creat creat"),
            (
                "the directories of my company's pass",
                "directory company pass",
            ),
            ("读取文件 soon", "读 取 文 件 soon"),
            ("Größe 42", "größe 42"),
        ] {
            let found: Vec<String> = words_of(text).collect();
            assert_eq!(found.join(" "), words, "{text}");
        }
    }

    /// Words in names count more than in descriptions, rare ones more than common ones, and nothing is found without a word.
    #[test]
    fn better_tools_come_first() {
        let tools = [
            r#"{"name":"list","description":"Lists issues of a repository."}"#,
            r#"{"name":"create_issue","description":"Opens one in a repository."}"#,
            r#"{"name":"repository","inputSchema":{"properties":{"owner":{"description":"Who has the repository"}}}}"#,
        ];
        let index = ToolIndex::new(&tools.map(|tool| tool.parse().expect("an object")));
        assert_eq!(index.find("issue", 5), [1, 0]);
        assert_eq!(index.find("repository", 5)[0], 2);
        assert_eq!(index.find("create an issue in the repository", 1), [1]);
        assert_eq!(index.find("owners", 5), [2]);
        assert_eq!(index.find("weather", 5), [0; 0]);
        assert_eq!(index.find("the of", 5), [0; 0]);
        // Words that no tool has do not keep others from being looked at.
        let long: String = (0..200).map(|number| format!("x{number} ")).collect();
        assert_eq!(index.find(&format!("{long} owner"), 5), [2]);
        assert_eq!(ToolIndex::new(&[]).find("a tool", 5), [0; 0]);
    }
}
