//! Locations of the persistent state of gateways.
//!
//! A service has a directory of its own (`TOOLYARD_STATE_DIR`, `STATE_DIRECTORY`). Without one, a user's gateways share
//! a directory, and each has its own files there, named after its manifest: the keys of one do not lock another.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use toolyard_store::DatabaseLocation;

/// Name of the store in the directory of a service.
const STORE: &str = "toolyard.db";

/// Length of a manifest's name in the names of its files, beside the digest of its path.
const NAME_LENGTH: usize = 40;

/// The files of a gateway's state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GatewayState {
    folder: PathBuf,
    name: String,
}

impl GatewayState {
    /// Returns the state of the gateway of these manifests. `None` if it keeps none: the demo, or a user without a home
    /// directory.
    pub(crate) fn of(manifests: &[PathBuf]) -> Option<Self> {
        Self::locate(manifests, &environment)
    }

    fn locate(manifests: &[PathBuf], variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        if let Some(folder) = of_service(variable) {
            return Some(Self { folder, name: "toolyard".to_owned() });
        }
        let folder = of_user(variable)?.join("stores");
        // A gateway that has started with only some of these files keeps its store.
        let names: Vec<_> = ordered(manifests).iter().flat_map(|path| names(path)).collect();
        let mut states = names.iter().map(|path| Self { folder: folder.clone(), name: file_name(path) });
        states.clone().find(|state| state.store().exists()).or_else(|| states.next())
    }

    /// Returns the path of the store.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join(format!("{}.db", self.name))
    }

    /// Returns the path of the count of audit records, for a store that is on another machine.
    pub(crate) fn unrecorded_count(&self) -> PathBuf {
        self.folder.join(format!("{}.unrecorded", self.name))
    }
}

/// Returns the store that all gateways of this user would share, if there is one and this gateway has not begun its own.
pub(crate) fn unused_shared_store(store: &DatabaseLocation) -> Option<PathBuf> {
    let DatabaseLocation::File(own) = store else { return None };
    let folder = of_user(&environment)?;
    let shared = folder.join(STORE);
    (own.starts_with(folder.join("stores")) && !own.exists() && shared.exists()).then_some(shared)
}

fn environment(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// Returns the directory for persistent state.
pub(crate) fn folder() -> Option<PathBuf> {
    of_service(&environment).or_else(|| of_user(&environment))
}

/// Returns the directory that belongs to one gateway.
fn of_service(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|folder| !folder.as_os_str().is_empty());
    // systemd sets one directory or several separated by colons. The first one is used.
    let first = |folders: PathBuf| std::env::split_paths(&folders).next().unwrap_or_default();
    set("TOOLYARD_STATE_DIR").or_else(|| set("STATE_DIRECTORY").map(first))
}

/// Returns the directory that the gateways of this user share (XDG Base Directory Specification).
fn of_user(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let folder = |name: &str, inside: &str| {
        let folder = variable(name).filter(|folder| !folder.as_os_str().is_empty())?;
        Some(folder.join(inside))
    };
    folder("XDG_STATE_HOME", "toolyard").or_else(|| folder("HOME", ".local/state/toolyard"))
}

/// Returns the files and then the folders of a gateway. The file that configures the gateway comes first.
pub(crate) fn ordered(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut files: Vec<_> = toolyard_manifest::files(paths);
    if let Some(main) = files.iter().position(|file| configures_gateway(file)) {
        files[..=main].rotate_right(1);
    }
    files.extend(paths.iter().filter(|path| path.is_dir()).cloned());
    files
}

/// Returns the path without links, and the path with a link only at its end: a volume of Kubernetes consists of links
/// whose targets change.
pub(crate) fn names(path: &Path) -> Vec<PathBuf> {
    let Ok(target) = path.canonicalize() else { return vec![path.to_owned()] };
    let link = path.file_name().and_then(|name| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(folder.unwrap_or(Path::new(".")).canonicalize().ok()?.join(name))
    });
    let link = link.filter(|link| *link != target);
    let names = [target].into_iter().chain(link);
    // Kubernetes puts the files of a volume into a folder `..TIME`, of which each change makes another one.
    let is_mounted =
        |name: &PathBuf| name.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b".."));
    let (mounted, mut lasting): (Vec<_>, Vec<_>) = names.partition(is_mounted);
    lasting.extend(mounted);
    lasting
}

/// Returns `true` if this file has the document of the gateway itself, as far as its lines tell.
fn configures_gateway(file: &Path) -> bool {
    if !file.is_file() {
        return false;
    }
    let Ok(text) = std::fs::read_to_string(file) else { return false };
    let plain: String =
        text.chars().filter(|character| !matches!(character, '"' | '\'' | ' ' | '\t' | '\r')).collect();
    plain
        .split(['\n', ',', '{', '}'])
        .any(|part| part == "kind:Toolyard" || part.starts_with("kind:Toolyard#"))
}

/// Returns a file name that people recognise and that no other path has.
fn file_name(path: &Path) -> String {
    let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
    let name = format!("{}-{}", parent.display(), path.file_stem().unwrap_or_default().display());
    let is_plain =
        |character: &char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    let name: String = name.chars().filter(is_plain).take(NAME_LENGTH).collect();
    format!("{name}-{}", &digest(path)[..12]).trim_start_matches(['-', '.']).to_owned()
}

/// Returns a digest of a path, in hexadecimal.
pub(crate) fn digest(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    toolyard_core::random::hex(&digest[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: (&str, &str) = ("HOME", "/home/me");

    fn locate(manifests: &[&Path], variables: &[(&str, &str)]) -> Option<GatewayState> {
        let variable = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
        };
        let manifests: Vec<_> = manifests.iter().map(|path| path.to_path_buf()).collect();
        GatewayState::locate(&manifests, &variable)
    }

    #[test]
    fn service_has_the_store_of_its_directory() {
        let check = |variables: &[(&str, &str)], expected: &str| {
            for manifests in [&[][..], &[Path::new("/etc/toolyard/tools.yaml")]] {
                let state = locate(manifests, variables).expect("a state");
                assert_eq!(state.store(), Path::new(expected), "{variables:?}");
            }
        };
        check(&[HOME, ("STATE_DIRECTORY", "/var/lib/yard:/other")], "/var/lib/yard/toolyard.db");
        check(
            &[HOME, ("STATE_DIRECTORY", "/var/lib/yard"), ("TOOLYARD_STATE_DIR", "/mine")],
            "/mine/toolyard.db",
        );
    }

    #[test]
    fn each_manifest_of_a_user_has_a_store() {
        let check = |manifest: &str, variables: &[(&str, &str)], expected: Option<&str>| {
            let path = locate(&[Path::new(manifest)], variables).map(|state| state.store());
            let digest = &digest(Path::new(manifest))[..12];
            let path = path.map(|path| path.display().to_string().replace(digest, "DIGEST"));
            assert_eq!(path.as_deref(), expected, "{manifest} {variables:?}");
        };
        let stores = "/home/me/.local/state/toolyard/stores";
        check("/a/shop/toolyard.yaml", &[HOME], Some(&format!("{stores}/shop-toolyard-DIGEST.db")));
        check("/b/shop/toolyard.yaml", &[HOME], Some(&format!("{stores}/shop-toolyard-DIGEST.db")));
        check("/a/\u{e9}/../x y.yaml", &[HOME], Some(&format!("{stores}/xy-DIGEST.db")));
        check("-", &[HOME], Some(&format!("{stores}/DIGEST.db")));
        let xdg = ("XDG_STATE_HOME", "/xdg");
        check("/a/shop/toolyard.yaml", &[HOME, xdg], Some("/xdg/toolyard/stores/shop-toolyard-DIGEST.db"));
        check("/a/shop/toolyard.yaml", &[("HOME", "")], None);
        check("/a/shop/toolyard.yaml", &[("TOOLYARD_STATE_DIR", "")], None);
    }

    #[test]
    fn demo_keeps_no_state() {
        assert_eq!(locate(&[], &[HOME]), None);
    }

    #[test]
    fn store_is_found_by_any_name_of_the_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [tools, gateway, link] = ["a.yaml", "gateway.yaml", "link.yaml"].map(|name| root.join(name));
        std::fs::write(&tools, "kind: ToolRegistry\n").unwrap();
        std::fs::write(&gateway, "kind: Toolyard\n").unwrap();
        std::os::unix::fs::symlink(&gateway, &link).unwrap();
        let home = [("HOME", root.to_str().unwrap())];
        let first = locate(&[&gateway], &home).unwrap();
        assert_ne!(locate(&[&tools], &home).unwrap(), first, "another gateway");
        for manifests in [&[&*tools, &gateway][..], &[&root], &[&link]] {
            assert_eq!(locate(manifests, &home).unwrap(), first, "{manifests:?}");
        }
        // Started before another file configured the gateway.
        let alone = locate(&[&tools], &home).unwrap();
        std::fs::create_dir_all(&alone.folder).unwrap();
        std::fs::write(alone.store(), "").unwrap();
        assert_eq!(locate(&[&tools, &gateway], &home).unwrap(), alone);
    }
}
