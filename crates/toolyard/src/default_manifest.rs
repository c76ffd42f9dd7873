//! The manifest of commands that are started without `-f`.

use std::path::{Path, PathBuf};

/// Name of the manifest in the current directory, and in the configuration folder.
pub(crate) const FILE_NAME: &str = "toolyard.yaml";

/// Returns `toolyard.yaml` in the current directory, or else the one in the configuration folder, if there is one.
pub(crate) fn find() -> Option<PathBuf> {
    let here = PathBuf::from(FILE_NAME);
    let of_user = of_user(&|name| std::env::var_os(name).map(PathBuf::from));
    Some(here).filter(|file| file.is_file()).or_else(|| of_user.filter(|file| file.is_file()))
}

/// Returns the manifest that `find` finds, in a list.
pub(crate) fn find_all() -> Vec<PathBuf> {
    find().into_iter().collect()
}

/// Returns the path of the manifest in the configuration folder (XDG Base Directory Specification).
pub(crate) fn of_user(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let folder = variable("XDG_CONFIG_HOME").filter(absolute);
    let folder = folder.or_else(|| Some(variable("HOME").filter(absolute)?.join(".config")))?;
    Some(folder.join("toolyard").join(FILE_NAME))
}

/// Formats a path for people: relative to the home directory of the user if it is below.
pub(crate) fn displayed(path: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.parent().is_some());
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_folder_follows_environment() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let variable = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
            };
            assert_eq!(of_user(&variable), expected.map(PathBuf::from), "{variables:?}");
        };
        let home = ("HOME", "/home/me");
        check(&[], None);
        check(&[("HOME", "")], None);
        check(&[home], Some("/home/me/.config/toolyard/toolyard.yaml"));
        check(&[home, ("XDG_CONFIG_HOME", "/xdg")], Some("/xdg/toolyard/toolyard.yaml"));
        // Relative paths are invalid and are ignored.
        check(&[home, ("XDG_CONFIG_HOME", "xdg")], Some("/home/me/.config/toolyard/toolyard.yaml"));
    }
}
