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
    let path = directory.map_or_else(|| path.to_owned(), |directory| directory.join(path));
    let has_words = program
        .to_string_lossy()
        .trim()
        .contains(char::is_whitespace);
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
            format!("{error}; the file is there, but not the interpreter in its first line")
        }
        _ => error.to_string(),
    }
}
