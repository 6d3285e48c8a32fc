//! Programs that are started by a script, such as `npx.cmd` of Node.js on Windows.
//!
//! The Windows shell finds `npx.cmd` for `npx`; the system function that starts processes only adds `.exe`. The
//! standard library starts batch files and quotes their arguments.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Extensions of programs, in the order of preference.
const PROGRAM_EXTENSIONS: [&str; 4] = ["exe", "com", "cmd", "bat"];

/// Returns the path of a program's file in the directories of `PATH`; a program with a path or an extension is returned
/// unchanged.
pub(super) fn find(
    program: &OsStr,
    directories: impl IntoIterator<Item = PathBuf>,
    is_file: impl Fn(&Path) -> bool,
) -> OsString {
    let name = Path::new(program);
    if name.components().count() != 1 || name.extension().is_some() {
        return program.to_owned();
    }
    let files = directories.into_iter().flat_map(|directory| {
        let file = directory.join(name);
        PROGRAM_EXTENSIONS.map(|extension| file.with_extension(extension))
    });
    let mut files = files.filter(|file| is_file(file));
    files
        .next()
        .map_or_else(|| program.to_owned(), PathBuf::into_os_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program without a path and an extension is found in `PATH` with any known extension; all other programs are
    /// returned unchanged.
    #[test]
    fn launchers_are_found_in_the_path() {
        let there = ["a/node.exe", "b/npx.cmd", "b/node.cmd", "b/tool.bat"];
        let found = |program: &str| {
            let directories = ["a", "b"].map(PathBuf::from);
            let is_file = |file: &Path| there.iter().any(|known| Path::new(known) == file);
            find(program.as_ref(), directories, is_file)
        };
        for (program, file) in [
            ("npx", "b/npx.cmd"),
            ("node", "a/node.exe"),
            ("tool", "b/tool.bat"),
            ("npx.cmd", "npx.cmd"),
            ("a/npx", "a/npx"),
            ("missing", "missing"),
        ] {
            assert_eq!(PathBuf::from(found(program)), Path::new(file), "{program}");
        }
    }
}
