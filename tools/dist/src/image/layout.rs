//! The layout of an image on disk, as the OCI image specification 1.0 has it: blobs by digest, and an index.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::checksums::sha256;
use crate::file_tree::{FILE, FileTree, gzip};
use crate::release::{Release, size};

/// A compressed layer.
pub(super) struct Layer {
    /// Holds the file.
    _folder: TempDir,
    file: PathBuf,
    /// Digest of the tar archive before its compression.
    diff_id: String,
    /// Its content, for the history of the image.
    content: &'static str,
}

impl Layer {
    /// Compresses the tar archive that `write` makes.
    pub(super) fn written_by(
        content: &'static str,
        release: &Release,
        write: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let folder = TempDir::new().context("create a folder for a layer")?;
        let archive = folder.path().join("layer.tar");
        write(&archive)?;
        let diff_id = sha256(&archive)?;
        let file = gzip(&archive, release.compression)?;
        Ok(Self { _folder: folder, file, diff_id, content })
    }

    /// Packs a tree whose files belong to `owner`.
    pub(super) fn of_tree(
        tree: &FileTree,
        owner: u32,
        release: &Release,
        content: &'static str,
    ) -> anyhow::Result<Self> {
        Self::written_by(content, release, |archive| tree.pack(archive, owner, release.epoch))
    }

    /// Packs one folder of a tree, without those above it, which have another owner.
    pub(super) fn of_folder(
        tree: &FileTree,
        folder: &str,
        owner: u32,
        release: &Release,
        content: &'static str,
    ) -> anyhow::Result<Self> {
        Self::written_by(content, release, |archive| {
            tree.pack_names(archive, &[folder.into()], owner, release.epoch)
        })
    }
}

/// The files of an image.
pub(super) struct ImageLayout {
    tree: FileTree,
}

impl ImageLayout {
    /// Writes the layers, the configuration completed by them, the manifest and the index.
    pub(super) fn new(
        layers: &[Layer],
        config: &Value,
        release: &Release,
        name: &str,
    ) -> anyhow::Result<Self> {
        let layout = Self { tree: FileTree::new()? };
        let mut descriptors = Vec::new();
        for layer in layers {
            descriptors.push(layout.add_file(&layer.file, "application/vnd.oci.image.layer.v1.tar+gzip")?);
        }
        let mut config = config.clone();
        let diff_ids: Vec<_> = layers.iter().map(|layer| format!("sha256:{}", layer.diff_id)).collect();
        config["rootfs"] = json!({"type": "layers", "diff_ids": diff_ids});
        let created = config["created"].clone();
        let history =
            |layer: &Layer| json!({"created": created, "created_by": "xtask-dist", "comment": layer.content});
        config["history"] = layers.iter().map(history).collect();
        let config = layout.add_json(&config, "application/vnd.oci.image.config.v1+json")?;
        let manifest_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest =
            json!({"schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": descriptors});
        let mut manifest = layout.add_json(&manifest, manifest_type)?;
        manifest["platform"] = json!({"architecture": release.target.architecture(), "os": "linux"});
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [manifest],
        });
        layout.tree.write("index.json", FILE, index.to_string())?;
        layout.tree.write("oci-layout", FILE, json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
        Ok(layout)
    }

    /// Packs the layout into one file.
    pub(super) fn pack(&self, to: &Path, epoch: u64) -> anyhow::Result<()> {
        self.tree.pack(to, 0, epoch)
    }

    fn add_json(&self, value: &Value, media_type: &str) -> anyhow::Result<Value> {
        let file = self.tree.path().join("blob.json");
        fs::write(&file, value.to_string()).context("write a blob")?;
        let descriptor = self.add_file(&file, media_type)?;
        fs::remove_file(&file).context("remove a blob")?;
        Ok(descriptor)
    }

    /// Adds a blob and returns its descriptor.
    fn add_file(&self, file: &Path, media_type: &str) -> anyhow::Result<Value> {
        let digest = sha256(file)?;
        self.tree.copy(&format!("blobs/sha256/{digest}"), FILE, file)?;
        Ok(json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size(file)?}))
    }
}
