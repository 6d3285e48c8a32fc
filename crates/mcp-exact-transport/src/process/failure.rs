//! Why a process was not started: the error of the system is the same for a missing program and a missing folder.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Returns why a program was not started in a folder, which is that of this process without one, as the rest of a sentence.
pub fn start_failure(program: &OsStr, directory: Option<&Path>, error: &io::Error) -> String {
    if let Some(directory) = directory
        && !directory.is_dir()
    {
        let wrong = if directory.exists() {
            "is no folder"
        } else {
            "does not exist"
        };
        return format!(
            "its working directory `{}` (`cwd`) {wrong}",
            directory.display()
        );
    }
    let path = Path::new(program);
    let is_path = path.components().count() > 1;
    let at = |path: &Path| directory.map_or_else(|| path.to_owned(), |folder| folder.join(path));
    let path = at(path);
    let text = program.to_string_lossy();
    let mut words = text.split_whitespace();
    let first = Path::new(words.next().unwrap_or_default());
    // A folder may have a space in its name.
    let has_words = words.next().is_some()
        && (!is_path || is_on_path(first) || first.components().count() > 1 && at(first).is_file());
    if is_path && path.is_dir() {
        return "it is a folder, and no program".to_owned();
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied if is_path => {
            format!(
                "{error}; the file is not executable: allow it, or give it to its interpreter as an argument"
            )
        }
        io::ErrorKind::NotFound if has_words && !path.exists() => {
            format!(
                "{error}; a command is the program alone: its arguments are words of their own, in `args`"
            )
        }
        io::ErrorKind::NotFound if is_path && path.exists() => {
            format!(
                "{error}; the file is there, but not the interpreter in its first line, or the loader that it names"
            )
        }
        _ => error.to_string(),
    }
}

/// Returns true if a word may be the name of a program on the path.
fn is_on_path(word: &Path) -> bool {
    if word.components().count() > 1 {
        return false;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // There, names of files have endings.
    cfg!(windows) || std::env::split_paths(&paths).any(|folder| folder.join(word).is_file())
}
