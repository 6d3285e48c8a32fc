//! Generates documents by changing bytes of small documents.
//!
//! The same seed yields the same documents on every machine.

use mcp_exact_tests_support::Rng;

/// Documents that are mutated.
const SMALL_DOCUMENTS: [&str; 34] = [
    "null",
    "true",
    " false ",
    "0",
    "-12.5e+3",
    "[1,-0,0.5,1E-7]",
    "123456789012345678901234567890",
    r#""""#,
    r#""plain text of some length, more than thirty-two bytes""#,
    r#""a\"b\\c\/d\b\f\n\r\t""#,
    r#""\u0041\u00e9\u20ac\ud83d\ude00""#,
    "\"é€😀\u{7f}\u{2028}\"",
    "[]",
    "[ ]",
    "{}",
    "{ }",
    "[[[[]]]]",
    "[true,false,null]",
    "[\"a\",\n\t\"b\" , \"c\"]\r\n",
    r#"{"a":1}"#,
    r#"{"a":1,"b":2,"c":3}"#,
    r#"{"a":{"b":{"c":[{"d":null}]}}}"#,
    r#" { "a" : [ 1 , 2 ] , "b" : { } } "#,
    r#"{"\u0061":1,"é":"x","":[],"/~":{}}"#,
    r#"[{"x":1.0},{"x":1e2},[],{},""]"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":"a-1","result":{"tools":[]}}"#,
    r#"{"jsonrpc":"2.0","id":7.0,"error":{"code":-32601,"message":"?"}}"#,
    r#"{"method":"tools/call","params":{"name":"t","arguments":{"x":[1]}}}"#,
    r#"{"type":"text","text":"hi\n","annotations":{"priority":0.5}}"#,
    r#"{"name":"t","inputSchema":{"type":"object"},"_meta":{"a/b":null}}"#,
    r#"{"method":"notifications/progress","params":{"progress":1,"progressToken":9}}"#,
    r#"{"$serde_json::private::RawValue":"[1]"}"#,
    r#"[{"$serde_json::private::Number":"1"}]"#,
];

/// Text fragments that are likely to cause errors when inserted.
const FRAGMENTS: [&[u8]; 56] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\n",
    b"\r\n",
    b"\t",
    b"0",
    b"1",
    b"9",
    b"-",
    b"+",
    b".",
    b"e",
    b"E",
    b"e5",
    b".5",
    b"1e400",
    b"-0",
    b"01",
    b"null",
    b"true",
    b"false",
    b"nul",
    b"\\u",
    b"\\u0041",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00",
    b"\\ud83d\\ude00",
    b"\\n",
    b"\\/",
    b"\\x",
    b"\0",
    b"\x01",
    b"\x1f",
    b"\x7f",
    b"\x80",
    b"\xc3",
    b"\xc3\xa9",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\xff",
    b"\xef\xbb\xbf",
    b"//",
    b"\"a\":1,",
    b"\"a\"",
    b"[1]",
    b"{\"a\":2}",
    b"'",
    b"\x0c",
];

/// Seeded generator of documents.
pub(crate) struct Mutator {
    /// Random number generator.
    rng: Rng,
    /// The current document, which is mutated in place.
    buffer: Vec<u8>,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            buffer: Vec::new(),
        }
    }

    /// Generates the next document and returns it.
    pub(crate) fn document(&mut self) -> &[u8] {
        self.buffer.clear();
        let seed = *self.rng.pick(&SMALL_DOCUMENTS);
        self.buffer.extend_from_slice(seed.as_bytes());
        for _ in 0..*self.rng.pick(&[0, 1, 1, 1, 2, 2, 3, 5]) {
            self.mutate();
        }
        if self.rng.below(2_000) == 0 {
            self.wrap_in_containers();
        }
        &self.buffer
    }

    /// Applies one random mutation at a random position of the document.
    fn mutate(&mut self) {
        let length = self.buffer.len();
        let at = self.rng.below(length + 1);
        let end = (at + 1 + self.rng.below(4)).min(length);
        match self.rng.below(10) {
            0 => self.buffer.truncate(at),
            1 => drop(self.buffer.drain(at.min(end)..end)),
            2 if at < length => self.buffer[at] ^= 1 << self.rng.below(8),
            3 if at < length => self.buffer[at] = self.rng.below(256) as u8,
            4 if at < length => {
                let other = self.rng.below(length);
                self.buffer.swap(at, other);
            }
            5 => {
                let copy = self.buffer[at.min(end)..end].to_vec();
                self.insert(at, &copy);
            }
            6 => {
                let other = self.rng.pick(&SMALL_DOCUMENTS).as_bytes();
                self.insert(at, other);
            }
            7 => self.replace_value(),
            _ => {
                let piece = *self.rng.pick(&FRAGMENTS);
                self.insert(at, piece);
            }
        }
    }

    /// Inserts bytes into the document.
    fn insert(&mut self, at: usize, piece: &[u8]) {
        self.buffer.splice(at..at, piece.iter().copied());
    }

    /// Replaces a sequence of digits, letters or quotes by another complete document, because the result is often valid
    /// JSON.
    fn replace_value(&mut self) {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'"';
        let Some(start) = self.buffer.iter().position(is_part) else {
            return;
        };
        let skip = self.rng.below(self.buffer.len() - start);
        let Some(from) = self.buffer[start + skip..].iter().position(is_part) else {
            return;
        };
        let from = start + skip + from;
        let run = self.buffer[from..]
            .iter()
            .take_while(|b| is_part(b))
            .count();
        let other = self.rng.pick(&SMALL_DOCUMENTS).as_bytes();
        self.buffer.splice(from..from + run, other.iter().copied());
    }

    /// Wraps the document in up to 150 arrays or objects, so that its nesting can exceed the recursion limit of
    /// serde_json.
    fn wrap_in_containers(&mut self) {
        let levels = 100 + self.rng.below(50);
        let (open, close): (&[u8], &[u8]) = if self.rng.chance(50) {
            (b"[", b"]")
        } else {
            (b"{\"a\":", b"}")
        };
        let inner = std::mem::take(&mut self.buffer);
        self.buffer.extend(open.repeat(levels));
        self.buffer.extend(inner);
        self.buffer.extend(close.repeat(levels));
    }
}
