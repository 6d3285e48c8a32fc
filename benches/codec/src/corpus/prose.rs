//! Text of any length that resembles tool results: sentences, logs, source code, base64. The text is deterministic,
//! from a random number generator with a fixed seed.

/// Words of which the sentences consist.
const WORDS: &[&str] = &[
    "the",
    "request",
    "returns",
    "a",
    "list",
    "of",
    "entries",
    "sorted",
    "by",
    "date",
    "when",
    "given",
    "path",
    "is",
    "relative",
    "it",
    "resolves",
    "against",
    "root",
    "directory",
    "and",
    "file",
    "must",
    "exist",
    "before",
    "writing",
    "each",
    "value",
    "may",
    "be",
    "empty",
    "results",
    "are",
    "limited",
    "to",
    "first",
    "page",
    "unless",
    "cursor",
    "set",
    "output",
    "contains",
    "matching",
    "lines",
    "with",
    "their",
    "numbers",
    "errors",
    "include",
    "code",
];

/// Words with characters outside of ASCII.
const NON_ASCII: &[&str] = &[
    "größer",
    "prüfen",
    "déjà",
    "naïve",
    "señal",
    "año",
    "検索",
    "結果",
    "данные",
    "файл",
    "→",
    "…",
    "“quoted”",
    "😀",
];

/// Alphabet of base64 (RFC 4648, section 4).
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Deterministic random number generator (xorshift).
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a random number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % limit.max(1) as u64).unwrap_or(0)
    }

    /// Returns a random element of `from`.
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// Returns about `len` bytes of sentences without characters that need escapes.
pub fn sentences(seed: u64, len: usize) -> String {
    words(seed, len, 0)
}

/// Returns about `len` bytes of sentences in which every fifth word is outside of ASCII.
pub fn multilingual(seed: u64, len: usize) -> String {
    words(seed, len, 5)
}

/// Returns about `len` bytes of sentences; every word whose number is a multiple of `foreign_every` contains characters
/// outside of ASCII, and no word does if `foreign_every` is 0.
fn words(seed: u64, len: usize, foreign_every: usize) -> String {
    let mut numbers = Numbers::new(seed);
    let mut out = String::with_capacity(len + 16);
    let mut count = 0;
    while out.len() < len {
        count += 1;
        let foreign = foreign_every > 0 && count % foreign_every == 0;
        let word = numbers.pick(if foreign { NON_ASCII } else { WORDS });
        if out.is_empty() || out.ends_with(". ") {
            out.extend(word.chars().take(1).flat_map(char::to_uppercase));
            out.extend(word.chars().skip(1));
        } else {
            out.push_str(word);
        }
        out.push_str(if count % 12 == 0 { ". " } else { " " });
    }
    out.truncate(out.trim_end().len());
    out.push('.');
    out
}

/// Returns about `len` bytes of source code and log lines with line breaks, tabs, quotes and backslashes.
pub fn code(seed: u64, len: usize) -> String {
    let mut numbers = Numbers::new(seed);
    let mut out = String::with_capacity(len + 128);
    while out.len() < len {
        let (a, b, n) = (
            numbers.pick(WORDS),
            numbers.pick(WORDS),
            numbers.below(10_000),
        );
        let line = match numbers.below(6) {
            0 => format!(
                "fn {a}_{b}(input: &str) -> Result<usize, Error> {{\n\tlet {a} = input.len();\n"
            ),
            1 => format!("\tprintln!(\"{a}: {{}}\", {b});\n"),
            2 => format!("\tif {a} > {n} {{ return Err(Error::new(\"{b} is above {n}\")); }}\n"),
            3 => format!(
                "2025-06-18T12:{:02}:{:02}Z INFO {a} {b} took {n} us\n",
                n % 60,
                n % 59
            ),
            4 => format!("\tlet path = \"C:\\\\{a}\\\\{b}\\\\{n}.txt\";\n"),
            _ => format!(
                "// {} {a} {b} {}\n",
                numbers.pick(WORDS),
                numbers.pick(WORDS)
            ),
        };
        out.push_str(&line);
    }
    out.truncate(len);
    out
}

/// Returns `len` characters of base64, rounded down to a multiple of four.
pub fn base64(seed: u64, len: usize) -> String {
    let mut numbers = Numbers::new(seed);
    (0..len / 4 * 4)
        .map(|_| char::from(BASE64[numbers.below(64)]))
        .collect()
}
