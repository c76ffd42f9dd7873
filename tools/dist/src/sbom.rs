//! The software bill of materials, in CycloneDX 1.6: every crate that is linked, as resolved for this target and these
//! features, with its licence, its checksum and what it uses.
//!
//! C code is part of the crates that compile it: SQLite of `libsqlite3-sys`, QuickJS of `rquickjs-sys`, Lua of
//! `lua-src`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};
use xtask_support::process;

use crate::checksums::sha256;
use crate::release::{Release, VERSION, output_of};

/// A name and a version.
type CrateId = (String, String);

/// The members of `cargo metadata` that are used.
#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
    resolve: ResolveGraph,
}

#[derive(Deserialize)]
struct CargoPackage {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    description: Option<String>,
    repository: Option<String>,
}

#[derive(Deserialize)]
struct ResolveGraph {
    nodes: Vec<ResolveNode>,
}

#[derive(Deserialize)]
struct ResolveNode {
    id: String,
    dependencies: Vec<String>,
}

/// Makes `toolyard-VERSION-TARGET.cdx.json`.
pub(crate) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let metadata = metadata(release)?;
    let linked = linked_crates(release)?;
    let checksums = lock_checksums()?;
    let root = purl("toolyard", VERSION);
    let components: Vec<_> = packages(&metadata, &linked)
        .filter(|package| package.name != "toolyard")
        .map(|package| component(package, &checksums))
        .collect();
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(release.epoch)?,
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "toolyard",
                "version": VERSION,
                "purl": root,
                "licenses": [{"expression": crate::release::LICENSE}],
                "hashes": [{"alg": "SHA-256", "content": sha256(&release.binary())?}],
                "properties": [{"name": "cargo:target", "value": release.target.triple()}],
            },
        },
        "components": components,
        "dependencies": dependencies(&metadata, &linked),
    });
    let path = release.file(&format!("toolyard-{VERSION}-{}.cdx.json", release.target.triple()));
    std::fs::write(&path, serde_json::to_string_pretty(&document)? + "\n")
        .with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

fn metadata(release: &Release) -> anyhow::Result<CargoMetadata> {
    let mut cargo = process::cargo();
    cargo.args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        release.target.triple(),
    ]);
    serde_json::from_str(&output_of(&mut cargo)?).context("read cargo metadata")
}

/// Returns what the binary is made of. `cargo tree` resolves features as a build does, unlike `cargo metadata`.
fn linked_crates(release: &Release) -> anyhow::Result<BTreeSet<CrateId>> {
    let mut cargo = process::cargo();
    cargo.args(["tree", "--locked", "--package", "toolyard"]);
    cargo.args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--target", release.target.triple()]);
    let tree = output_of(&mut cargo)?;
    Ok(tree.lines().filter_map(tree_line).collect())
}

/// Reads a line such as `serde v1.0.229 (*)`.
fn tree_line(line: &str) -> Option<CrateId> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    Some((name.to_owned(), version.to_owned()))
}

fn packages<'a>(
    metadata: &'a CargoMetadata,
    linked: &'a BTreeSet<CrateId>,
) -> impl Iterator<Item = &'a CargoPackage> {
    let is_linked = |package: &CargoPackage| {
        linked.iter().any(|(name, version)| *name == package.name && *version == package.version)
    };
    metadata.packages.iter().filter(move |package| is_linked(package))
}

fn component(package: &CargoPackage, checksums: &BTreeMap<CrateId, String>) -> Value {
    let purl = purl(&package.name, &package.version);
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
    });
    if let Some(license) = &package.license {
        component["licenses"] = json!([{"expression": spdx(license)}]);
    }
    if let Some(description) = &package.description {
        component["description"] = json!(description.trim());
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    if let Some(checksum) = checksums.get(&(package.name.clone(), package.version.clone())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// Returns the expression that old manifests write with a slash.
fn spdx(license: &str) -> String {
    license.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// Returns the edges between linked crates.
fn dependencies(metadata: &CargoMetadata, linked: &BTreeSet<CrateId>) -> Vec<Value> {
    let purls: BTreeMap<&str, String> = packages(metadata, linked)
        .map(|package| (package.id.as_str(), purl(&package.name, &package.version)))
        .collect();
    let nodes = metadata.resolve.nodes.iter();
    let edges = nodes.filter_map(|node| {
        let from = purls.get(node.id.as_str())?;
        let to: BTreeSet<_> = node.dependencies.iter().filter_map(|id| purls.get(id.as_str())).collect();
        Some(json!({"ref": from, "dependsOn": to}))
    });
    edges.collect()
}

fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// Returns the SHA-256 of the packages from the registry, as pinned in `Cargo.lock`.
fn lock_checksums() -> anyhow::Result<BTreeMap<CrateId, String>> {
    let path = xtask_support::root().join("Cargo.lock");
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    Ok(text.split("[[package]]").filter_map(lock_entry).collect())
}

/// Reads a package of `Cargo.lock`, whose values are one a line. Packages of the workspace have no checksum.
fn lock_entry(entry: &str) -> Option<(CrateId, String)> {
    let value = |key: &str| {
        let line = entry.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_prefix("= \""))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    Some(((value("name")?, value("version")?), value("checksum")?))
}

/// Returns a time as RFC 3339 writes it.
pub(crate) fn timestamp(epoch: u64) -> anyhow::Result<String> {
    let mut date = std::process::Command::new("date");
    let text = output_of(date.args(["--utc", "--date", &format!("@{epoch}"), "+%Y-%m-%dT%H:%M:%SZ"]))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_read_from_lines_of_cargo_tree() {
        let crate_id = Some(("serde".to_owned(), "1.0.229".to_owned()));
        assert_eq!(tree_line("serde v1.0.229"), crate_id);
        assert_eq!(tree_line("serde v1.0.229 (*)"), crate_id);
        assert_eq!(tree_line(""), None);
    }

    #[test]
    fn checksums_are_read_from_entries_of_the_lock_file() {
        let entry = "\nname = \"serde\"\nversion = \"1.0.229\"\nchecksum = \"12ab\"\ndependencies = [\n \"serde_core\",\n]\n";
        let expected = (("serde".to_owned(), "1.0.229".to_owned()), "12ab".to_owned());
        assert_eq!(lock_entry(entry), Some(expected));
        assert_eq!(lock_entry("\nname = \"toolyard\"\nversion = \"0.1.0\"\n"), None);
    }

    #[test]
    fn licences_with_a_slash_are_alternatives() {
        assert_eq!(spdx("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(spdx("MIT OR Apache-2.0"), "MIT OR Apache-2.0");
    }
}
