//! OCI images, made without a daemon: one of the binary, glibc and CA certificates, and one with Python, Node.js and uv
//! for servers on stdio. Both run as an ordinary user with a folder for its state.

mod layout;
mod runtimes;
mod system_files;

use std::path::PathBuf;

use serde_json::{Value, json};

use self::layout::{ImageLayout, Layer};
use crate::debian::MANIFEST;
use crate::file_tree::{FileTree, PROGRAM};
use crate::release::{LICENSE, REPOSITORY, Release, SUMMARY, VERSION};
use crate::sbom::timestamp;

/// User and group of the processes.
const USER: u32 = 65532;

/// Home of the user, and folder of the store.
const STATE: &str = "var/lib/toolyard";

/// Makes `toolyard-VERSION-image-ARCHITECTURE.tar`.
pub(crate) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let root = system_files::layer(release)?;
    assemble(release, "image", root)
}

/// Makes `toolyard-VERSION-image-runtimes-ARCHITECTURE.tar`.
pub(crate) fn make_with_runtimes(release: &Release) -> anyhow::Result<PathBuf> {
    let root = runtimes::layer(release)?;
    assemble(release, "image-runtimes", root)
}

/// Makes an image of a root: the binary and the state folder are layers of their own.
fn assemble(release: &Release, kind: &str, root: Layer) -> anyhow::Result<PathBuf> {
    let layers = [root, binary_layer(release)?, state_layer(release)?];
    let tag = if kind == "image" { VERSION.to_owned() } else { format!("{VERSION}-runtimes") };
    let layout = ImageLayout::new(&layers, &config(release)?, release, &format!("toolyard:{tag}"))?;
    let image = release.file(&format!("toolyard-{VERSION}-{kind}-{}.tar", release.target.architecture()));
    layout.pack(&image, release.epoch)?;
    Ok(image)
}

fn binary_layer(release: &Release) -> anyhow::Result<Layer> {
    let tree = FileTree::new()?;
    tree.copy("usr/bin/toolyard", PROGRAM, &release.binary())?;
    tree.copy_of("etc/toolyard/toolyard.yaml", MANIFEST)?;
    tree.copy_of("usr/share/doc/toolyard/copyright", "LICENSE")?;
    Layer::of_tree(&tree, 0, release, "binary and manifest")
}

/// The folder of the user, which owns it: a volume that is mounted there is created like this.
fn state_layer(release: &Release) -> anyhow::Result<Layer> {
    let tree = FileTree::new()?;
    tree.folder(STATE, 0o700)?;
    Layer::of_folder(&tree, STATE, USER, release, "state")
}

/// The part of the configuration that says how containers run.
fn config(release: &Release) -> anyhow::Result<Value> {
    Ok(json!({
        "created": timestamp(release.epoch)?,
        "architecture": release.target.architecture(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": [
                "PATH=/usr/local/bin:/usr/bin:/bin",
                format!("HOME=/{STATE}"),
                format!("TOOLYARD_STATE_DIR=/{STATE}"),
            ],
            "Entrypoint": ["/usr/bin/toolyard"],
            // Beyond loopback the gateway asks for a key before it starts.
            "Cmd": ["serve", "-f", "/etc/toolyard", "--listen", "0.0.0.0:8080"],
            "WorkingDir": format!("/{STATE}"),
            "Volumes": {format!("/{STATE}"): {}},
            "ExposedPorts": {"8080/tcp": {}},
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "toolyard",
                "org.opencontainers.image.description": SUMMARY,
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": LICENSE,
                "org.opencontainers.image.source": REPOSITORY,
            },
        },
    }))
}
