//! Paths of the marker that records that a gateway has had keys.

use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;
use toolyard_server::keys::KeyMarker;

use crate::state::{self, GatewayState};

/// Returns the marker of the gateway of these files and folders, however they are named. A demo without state has none.
pub(crate) async fn locate(files: Vec<PathBuf>) -> KeyMarker {
    let places = move || match GatewayState::of(&files) {
        None if files.is_empty() => Vec::new(),
        _ => marker_paths(&files, state::folder()),
    };
    let places = spawn_blocking(places).await;
    KeyMarker::at(places.unwrap_or_default())
}

/// Returns the places of a marker. The first ones belong to the file that configures the gateway, or else to the first file:
/// beside it, then in the folder for the state of this user. The others are those of a gateway that is started with only
/// some of these files, or with their folder.
fn marker_paths(paths: &[PathBuf], state: Option<PathBuf>) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for path in state::ordered(paths) {
        let names = state::names(&path);
        if path.exists() {
            places.extend(names.iter().filter_map(|name| path_beside(name)));
        }
        places.extend(names.iter().filter_map(|name| Some(of_user(state.as_ref()?, &state::digest(name)))));
    }
    if paths.is_empty() {
        places.extend(state.map(|state| of_user(&state, "demo")));
    }
    places
}

fn of_user(state: &Path, name: &str) -> PathBuf {
    state.join("keys-in-use").join(name)
}

/// Returns the marker in a folder of manifests, or beside a file. Hidden files are no manifests.
fn path_beside(file: &Path) -> Option<PathBuf> {
    if file.is_dir() {
        return Some(file.join(".toolyard-keys"));
    }
    let name = file.file_name()?.to_str()?;
    Some(file.with_file_name(format!(".{name}.toolyard-keys")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_paths_are_beside_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (file, more) = (root.join("tools.yaml"), root.join("more"));
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&more).unwrap();
        let displayed = |files: &[&Path], state: Option<&str>| {
            let files: Vec<_> = files.iter().map(|file| (*file).to_owned()).collect();
            let places = marker_paths(&files, state.map(PathBuf::from));
            let display =
                |place: &PathBuf| place.display().to_string().replace(root.to_str().unwrap(), "ROOT");
            places.iter().map(display).collect::<Vec<_>>()
        };
        assert_eq!(displayed(&[], Some("/state")), ["/state/keys-in-use/demo"]);
        assert_eq!(displayed(&[], None), [""; 0]);
        let file_first = displayed(&[&file, &more], Some("/state"));
        assert_eq!(file_first[0], "ROOT/.tools.yaml.toolyard-keys");
        assert!(
            file_first[1].starts_with("/state/keys-in-use/") && file_first[1].len() == 51,
            "{file_first:?}"
        );
        assert_eq!(file_first[2], "ROOT/more/.toolyard-keys", "of a folder without manifests");
        // Standard input has no path.
        assert_eq!(displayed(&[Path::new("-")], Some("/state")).len(), 1);
    }

    #[test]
    fn any_name_of_a_configuration_finds_the_marker() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [gateway, first, sub, link] =
            ["gateway.yaml", "a.yaml", "sub", "link"].map(|name| root.join(name));
        std::fs::write(&first, "kind: ToolRegistry\n").unwrap();
        std::fs::write(&gateway, "kind: ToolRegistry\n---\nkind: 'Toolyard' # of ours\n").unwrap();
        std::fs::create_dir(&sub).unwrap();
        let far_link = sub.join("other.yaml");
        std::os::unix::fs::symlink(&gateway, &far_link).unwrap();
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let ways: [Vec<PathBuf>; 6] = [
            vec![gateway.clone()],
            vec![root.clone()],
            vec![first.clone(), gateway.clone()],
            vec![far_link],
            vec![link.join("a.yaml"), link.join("sub/../gateway.yaml")],
            vec![link],
        ];
        for state in [None, Some(root.join("state"))] {
            for create in &ways {
                let marked = marker_paths(create, state.clone());
                let expected = root.join(".gateway.yaml.toolyard-keys");
                assert_eq!(marked[0], expected, "{create:?}");
                for serve in &ways {
                    let looked_at = marker_paths(serve, state.clone());
                    assert!(looked_at.contains(&marked[0]), "{create:?} {serve:?}");
                    // Where nothing can be written beside the configuration.
                    let of_user = marked.iter().find(|place| place.starts_with(root.join("state")));
                    assert!(of_user.is_none_or(|place| looked_at.contains(place)), "{create:?} {serve:?}");
                }
            }
        }
    }
}
