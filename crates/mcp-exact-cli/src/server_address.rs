//! Address of a server on the command line: its URL, or the command that starts it.

use std::ffi::OsString;

use anyhow::bail;

/// Returns the URL of the server, or `None` if the arguments are a command that starts the server.
///
/// # Errors
/// Returns an error if arguments follow the URL: an option after a command would be an argument of the server, so an
/// option after a URL is probably a mistake.
pub fn parse_url(server: &[OsString]) -> anyhow::Result<Option<&str>> {
    let Some((first, further)) = server.split_first() else {
        bail!("there is no server; name its URL, or the command that starts it");
    };
    let Some(url) = first
        .to_str()
        .filter(|text| text.starts_with("http://") || text.starts_with("https://"))
    else {
        return Ok(None);
    };
    if let Some(argument) = further.first() {
        let argument = argument.to_string_lossy();
        bail!("`{argument}` follows the URL of the server; put options before the URL");
    }
    Ok(Some(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments after a URL are an error; a command may have any arguments.
    #[test]
    fn options_after_a_url_are_refused() {
        let server = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let command = server(&["node", "server.js", "--json"]);
        assert_eq!(parse_url(&command).expect("a command has arguments"), None);
        let address = server(&["http://127.0.0.1/mcp"]);
        assert_eq!(
            parse_url(&address).expect("a URL stands alone"),
            Some("http://127.0.0.1/mcp")
        );
        let error =
            parse_url(&server(&["http://127.0.0.1/mcp", "--json"])).expect_err("it is misplaced");
        assert_eq!(
            error.to_string(),
            "`--json` follows the URL of the server; put options before the URL"
        );
        assert!(parse_url(&[]).is_err());
    }
}
