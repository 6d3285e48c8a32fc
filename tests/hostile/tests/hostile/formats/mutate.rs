//! Generates seeded mutations of valid texts, which may be valid or almost valid.

use super::cases::Cases;

/// Characters that no format allows, or that some parsers confuse with others.
#[rustfmt::skip]
const CONFUSABLE_CHARACTERS: &[char] = &[
    '\0', '\t', '\n', '\r', ' ', '!', '"', '#', '$', '%', '&', '\'', '(', ')', '*', '+',
    ',', '-', '.', '/', '0', '1', '2', '3', '5', '6', '9', ':', ';', '<', '=', '>', '?', '@',
    'A', 'F', 'G', 'T', 'V', 'Z', '[', '\\', ']', '^', '_', '`', 'a', 'f', 'g', 't', 'v', 'z',
    '{', '|', '}', '~', '\x7f', '\u{80}', '\u{a0}', 'é', 'ſ', '\u{212a}', '\u{0660}',
    '\u{200b}', '\u{2028}', '\u{feff}', '０', '／', '\u{e000}', '\u{fffe}', '😀', '\u{10ffff}',
];

/// Seeded generator of texts that differ from the valid texts of a format by a few changes.
pub(crate) struct Mutator<'a> {
    /// Texts of the format to change.
    cases: &'a Cases,
    /// State of the random number generator.
    state: u64,
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(cases: &'a Cases, seed: u64) -> Self {
        Self { cases, state: seed }
    }

    /// Returns a valid text after one to four changes; two thirds of the new characters are typical of the format.
    pub(crate) fn next_text(&mut self) -> String {
        let valid = self.pick(self.cases.accepted);
        let mut text: Vec<char> = valid.chars().collect();
        let changes = [1, 1, 1, 2, 3, 4];
        for _ in 0..self.pick(&changes) {
            self.change(&mut text);
        }
        text.into_iter().collect()
    }

    /// Inserts, removes, swaps or replaces a character at a random position, or appends the end of another valid text
    /// there.
    fn change(&mut self, text: &mut Vec<char>) {
        let at = self.number_below(text.len() + 1);
        let alphabet = if self.number_below(3) == 0 {
            CONFUSABLE_CHARACTERS
        } else {
            self.cases.typical_characters
        };
        let new = self.pick(alphabet);
        match self.number_below(12) {
            0 => text.insert(at, new),
            1 if at < text.len() => drop(text.remove(at)),
            2 if at < text.len() => {
                let other = self.number_below(text.len());
                text.swap(at, other);
            }
            3 => {
                let other: Vec<char> = self.pick(self.cases.accepted).chars().collect();
                text.truncate(at);
                text.extend(&other[self.number_below(other.len() + 1)..]);
            }
            _ if at < text.len() => text[at] = new,
            _ => text.push(new),
        }
    }

    /// Returns a random element of `choices`.
    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.number_below(choices.len())]
    }

    /// Returns a random number below `limit`.
    fn number_below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next_random() % limit as u64).expect("less than a usize")
    }

    /// Returns the next random number of SplitMix64 (Steele, Lea and Flood, 2014).
    fn next_random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
