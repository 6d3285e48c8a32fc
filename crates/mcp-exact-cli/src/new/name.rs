//! Names of new packages: what cargo, file systems and the registry of servers accept.

use anyhow::bail;

/// Words that cargo refuses: keywords of Rust, in use and reserved, crates that come with Rust, and folders of its output.
const WORDS: &str = "abstract alloc as async await become box break build const continue core crate deps do dyn else enum \
    examples extern false final fn for gen if impl in incremental let loop macro match mod move mut override priv proc_macro \
    proc-macro pub ref return self Self static std struct super test trait true try type typeof unsafe unsized use virtual \
    where while yield";
/// Names of devices, which no file of Windows has.
const DEVICES: &str = "aux com1 com2 com3 com4 com5 com6 com7 com8 com9 con lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9 nul prn";
/// Packages that the new one depends on.
const DEPENDENCIES: &str = "mcp_exact schemars serde serde_json tokio";
/// Longest name of a package on crates.io.
const LONGEST: usize = 64;
/// Longest name of an account on GitHub.
const LONGEST_ACCOUNT: usize = 39;

/// Checks the name of a package.
///
/// # Errors
/// Returns an error that says what the name must be.
pub fn check_package(name: &str) -> anyhow::Result<()> {
    let is_one_of = |words: &str, name: &str| words.split_whitespace().any(|word| word == name);
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if name.is_empty() || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        bail!("`{name}` is not a name of a package: it has to begin with a letter");
    }
    if let Some(letter) = name.chars().find(|letter| !is_letter(*letter)) {
        bail!(
            "`{name}` is not a name of a package: `{letter}` is not a letter, a digit, `-` or `_`; a folder is named by --path"
        );
    }
    if name.len() > LONGEST {
        bail!(
            "the name has {} characters; a package has {LONGEST} at most",
            name.len()
        );
    }
    if is_one_of(WORDS, name) {
        bail!("`{name}` is a word of Rust or cargo, and no name of a package; try `{name}-server`");
    }
    if is_one_of(DEVICES, &name.to_ascii_lowercase()) {
        bail!("`{name}` is a device of Windows, and no name of a package; try `{name}-server`");
    }
    if is_one_of(DEPENDENCIES, &name.replace('-', "_")) {
        bail!("the server depends on a package `{name}`; try `{name}-server`");
    }
    Ok(())
}

/// Checks the name of an account on GitHub.
///
/// # Errors
/// Returns an error that says what the name must be.
pub fn check_owner(owner: &str) -> anyhow::Result<()> {
    let is_account = (1..=LONGEST_ACCOUNT).contains(&owner.len())
        && owner
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
        && !owner.starts_with('-');
    if !is_account {
        bail!("--owner: `{owner}` is not an account on GitHub: it has letters, digits and `-`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_are_accepted() {
        for name in ["weather", "a", "Weather-2", "my_server", "tests", "selfish"] {
            check_package(name).expect(name);
        }
        check_package(&"a".repeat(LONGEST)).expect("the longest");
        for owner in ["ada", "Ada-Lovelace", "1"] {
            check_owner(owner).expect(owner);
        }
    }

    /// Keywords, paths, devices and dependencies are refused, each with what to do.
    #[test]
    fn other_names_are_refused() {
        for (name, expected) in [
            ("", "begin with a letter"),
            ("1st", "begin with a letter"),
            ("-x", "begin with a letter"),
            ("../up", "begin with a letter"),
            ("/root", "begin with a letter"),
            ("a/b", "`/` is not a letter"),
            ("a\\b", "`\\` is not a letter"),
            ("a b", "named by --path"),
            ("naïve-server", "`ï` is not a letter"),
            ("async", "try `async-server`"),
            ("test", "try `test-server`"),
            ("deps", "try `deps-server`"),
            ("CON", "a device of Windows"),
            ("mcp-exact", "depends on a package `mcp-exact`"),
            ("serde-json", "depends on a package"),
            (&"a".repeat(LONGEST + 1), "64 at most"),
        ] {
            let error = check_package(name).expect_err(name);
            assert!(error.to_string().contains(expected), "{error}");
        }
        for owner in ["", "a/b", "-a", "a.b", &"a".repeat(LONGEST_ACCOUNT + 1)] {
            assert!(check_owner(owner).is_err(), "{owner}");
        }
    }
}
