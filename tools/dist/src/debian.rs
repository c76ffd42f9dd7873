//! The Debian package: binary, systemd unit, a manifest in `/etc/toolyard`, and completions of shells.

use std::path::PathBuf;
use std::process::Command;

use xtask_support::process;

use crate::file_tree::{Compression, FILE, FileTree, PROGRAM, gzip};
use crate::release::{LICENSE, REPOSITORY, Release, SUMMARY, VERSION, output_of};

/// The systemd unit, in the repository.
pub(crate) const UNIT: &str = "deploy/systemd/toolyard.service";

/// The manifest that a new installation serves, in the repository.
pub(crate) const MANIFEST: &str = "deploy/debian/toolyard.yaml";

/// Programs that dpkg runs, in the repository and in the package.
const MAINTAINER_SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Shells and the files in which their completions are looked up.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/toolyard"),
    ("fish", "usr/share/fish/vendor_completions.d/toolyard.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_toolyard"),
];

/// Makes `toolyard_VERSION_ARCHITECTURE.deb`.
pub(crate) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let tree = FileTree::new()?;
    tree.copy("usr/bin/toolyard", PROGRAM, &release.binary())?;
    tree.copy_of("usr/lib/systemd/system/toolyard.service", UNIT)?;
    tree.copy_of("etc/toolyard/toolyard.yaml", MANIFEST)?;
    add_documentation(&tree)?;
    add_completions(&tree, release)?;
    add_control(&tree, release)?;
    let name = format!("toolyard_{}_{}.deb", debian_version(), release.target.architecture());
    let package = release.file(&name);
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", release.compression.deb(), "--build"]).arg(tree.path()).arg(&package);
    // dpkg takes this time for every file.
    build.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    set_times(&tree, release.epoch)?;
    process::run(build.stdout(std::process::Stdio::null()))?;
    Ok(package)
}

/// Returns the version with Debian's separator, which sorts a pre-release before its release.
fn debian_version() -> String {
    VERSION.replace('-', "~")
}

fn add_documentation(tree: &FileTree) -> anyhow::Result<()> {
    let folder = "usr/share/doc/toolyard";
    let copyright = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: toolyard\nSource: \
         {REPOSITORY}\n\nFiles: *\nCopyright: the contributors of Toolyard\nLicense: {LICENSE}\n The text of the licence is in \
         /usr/share/common-licenses/Apache-2.0.\n"
    );
    tree.write(&format!("{folder}/copyright"), FILE, copyright)?;
    tree.copy_of(&format!("{folder}/changelog"), "CHANGELOG.md")?;
    gzip(&tree.path().join(folder).join("changelog"), Compression::Best)?;
    tree.copy_of(&format!("{folder}/examples/process.yaml"), "examples/process.yaml")
}

/// Adds what the binary prints for each shell. A binary of another architecture cannot be run.
fn add_completions(tree: &FileTree, release: &Release) -> anyhow::Result<()> {
    if !release.target.is_native() {
        return Ok(());
    }
    for (shell, path) in COMPLETIONS {
        let script = output_of(Command::new(release.binary()).args(["completions", shell]))?;
        tree.write(path, FILE, script)?;
    }
    Ok(())
}

/// Writes the control file. The policy wants an address of the maintainers; the domain is one that is reserved
/// (RFC 2606), since the project has none.
fn add_control(tree: &FileTree, release: &Release) -> anyhow::Result<()> {
    let kib = crate::release::size(&release.binary())?.div_ceil(1024);
    let depends = release.needs.debian_packages()?.join(", ");
    let control = format!(
        "Package: toolyard\nVersion: {}\nArchitecture: {}\nMaintainer: Toolyard maintainers \
         <maintainers@toolyard.invalid>\nInstalled-Size: {kib}\nDepends: {depends}\nRecommends: \
         ca-certificates\nSuggests: nodejs, python3, uidmap\nSection: net\nPriority: optional\nHomepage: \
         {REPOSITORY}\nDescription: {SUMMARY}\n Toolyard connects to MCP servers, HTTP endpoints and OpenAPI services, \
         and\n serves all their tools as one MCP endpoint.\n",
        debian_version(),
        release.target.architecture(),
    );
    tree.write("DEBIAN/control", FILE, control)?;
    tree.write("DEBIAN/conffiles", FILE, "/etc/toolyard/toolyard.yaml\n")?;
    for script in MAINTAINER_SCRIPTS {
        let from = xtask_support::root().join("deploy/debian").join(script);
        tree.copy(&format!("DEBIAN/{script}"), PROGRAM, &from)?;
    }
    Ok(())
}

/// Sets the times of files, which dpkg-deb only lowers.
fn set_times(tree: &FileTree, epoch: u64) -> anyhow::Result<()> {
    let mut find = Command::new("find");
    find.arg(tree.path()).args([
        "-exec",
        "touch",
        "--no-dereference",
        "--date",
        &format!("@{epoch}"),
        "{}",
        "+",
    ]);
    process::run(&mut find)
}
