//! Configuration file of a client: where it has its servers, in JSON with comments and trailing commas, as VS Code and Zed write it.

use serde_json::{Map, Value};

use crate::dialects::switch_off;

/// Keys of a file that have the servers by name.
const SERVERS: [&str; 5] = [
    "mcpServers",
    "servers",
    "context_servers",
    "mcp.servers",
    "amp.mcpServers",
];

/// Returns the entries of a file by name. Servers that `mcp.excluded` or `mcp.allowed` of Gemini CLI switch off are disabled.
///
/// # Errors
/// Returns what is wrong with the file.
pub(super) fn servers(file: Value) -> Result<Map<String, Value>, String> {
    let Value::Object(mut file) = file else {
        return Err("it is no object".to_owned());
    };
    let mut servers = Map::new();
    let mut has_servers = false;
    for key in SERVERS {
        // A file that several clients read may have more than one of them.
        if let Some(found) = file.remove(key) {
            add(&mut servers, key, found)?;
            has_servers = true;
        }
    }
    if !has_servers {
        let Some(Value::Object(mcp)) = file.get("mcp") else {
            return Err("it has no servers".to_owned());
        };
        // VS Code has them one level below, opencode here.
        match mcp.get("servers") {
            Some(found) => add(&mut servers, "mcp.servers", found.clone())?,
            None => servers = mcp.clone(),
        }
    }
    switch_off(&mut servers, &file);
    Ok(servers)
}

/// Adds the servers below a key, apart from those whose names are known.
fn add(servers: &mut Map<String, Value>, key: &str, found: Value) -> Result<(), String> {
    let Value::Object(found) = found else {
        return Err(format!("`{key}` is no object"));
    };
    for (name, entry) in found {
        servers.entry(name).or_insert(entry);
    }
    Ok(())
}

/// Returns the text with spaces in the place of comments and trailing commas, so that lines and columns stay the same.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let mut at = 0;
    // Place of a comma after which only space and comments have come.
    let mut comma = None;
    while let Some(&byte) = out.get(at) {
        let end = match (byte, out.get(at + 1)) {
            (b'"', _) => {
                comma = None;
                at = end_of_string(&out, at);
                continue;
            }
            (b'/', Some(b'/')) => find(&out, at, b"\n").unwrap_or(out.len()),
            (b'/', Some(b'*')) => find(&out, at + 2, b"*/").map_or(out.len(), |end| end + 2),
            _ => {
                match byte {
                    b',' => comma = Some(at),
                    b']' | b'}' => {
                        if let Some(comma) = comma.take() {
                            out[comma] = b' ';
                        }
                    }
                    byte if byte.is_ascii_whitespace() => {}
                    _ => comma = None,
                }
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if !byte.is_ascii_whitespace() {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Only whole comments and ASCII characters were replaced.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// Returns the place after a string that begins at `at`.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn find(text: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = text.get(from..)?;
    let mut windows = rest.windows(wanted.len());
    windows
        .position(|window| window == wanted)
        .map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Comments and trailing commas vanish; strings, lines and columns stay.
    #[test]
    fn comments_become_spaces() {
        for (text, expected) in [
            ("{// ü\n\"a\":1,/* , */}", "{     \n\"a\":1        }"),
            (r#"["//", "a\"/*", ",]",]"#, r#"["//", "a\"/*", ",]" ]"#),
            ("[1, // one\n 2 ,\n]", "[1,       \n 2  \n]"),
            ("[1,,]", "[1, ]"),
            ("{\"a\": \"\\\\\" /* open", "{\"a\": \"\\\\\"        "),
            ("\"open \\", "\"open \\"),
            ("/", "/"),
        ] {
            assert_eq!(without_comments(text), expected, "{text}");
        }
    }

    /// Every client has another key for the servers; Gemini CLI switches servers off beside them.
    #[test]
    fn servers_are_found() {
        for file in [
            json!({"mcpServers": {"a": {}}}),
            json!({"servers": {"a": {}}, "inputs": []}),
            json!({"context_servers": {"a": {}}}),
            json!({"mcp": {"servers": {"a": {}}}}),
            json!({"mcp": {"a": {}}, "$schema": "x"}),
            json!({"mcpServers": {"a": {}}, "servers": {"a": {"command": "x"}}}),
        ] {
            let found = servers(file).expect("servers");
            assert_eq!(found.keys().collect::<Vec<_>>(), ["a"]);
        }
        for (mcp, disabled) in [
            (
                json!({"excluded": ["a"]}),
                json!({"a": {"disabled": true}, "b": {}}),
            ),
            (
                json!({"allowed": ["a"]}),
                json!({"a": {}, "b": {"disabled": true}}),
            ),
        ] {
            let found = servers(json!({"mcpServers": {"a": {}, "b": {}}, "mcp": mcp}));
            assert_eq!(found.map(Value::Object), Ok(disabled));
        }
        for (file, expected) in [
            (json!([]), "it is no object"),
            (json!({}), "it has no servers"),
            (json!({"mcpServers": []}), "`mcpServers` is no object"),
        ] {
            assert_eq!(servers(file).expect_err(expected), expected);
        }
    }
}
