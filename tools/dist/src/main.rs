//! `cargo xtask dist`: the files of a release, below `target/dist`.
//!
//! Each kind of file is a module. What is packed is one stripped binary, built for an old glibc or given by `--binary`.
//! The same commit gives the same files: owners, permissions, order and times in archives do not depend on the machine.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a developer's tool: it starts other programs and prints to the terminal"
)]

mod binary;
mod build;
mod checksums;
mod debian;
mod file_tree;
mod image;
mod npm;
mod release;
mod sbom;
mod tarball;
mod target;
mod wheel;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use self::file_tree::Compression;
use self::release::Release;
use self::target::DistTarget;

/// Make the files of a release: binary, Debian package, images, npm and PyPI packages, SBOM, checksums
#[derive(Parser)]
#[command(bin_name = "cargo xtask dist")]
struct DistArgs {
    /// Target to build for
    #[arg(long, value_enum, default_value_t = DistTarget::X86_64)]
    target: DistTarget,
    /// Pack this binary instead of building one; its glibc decides where the packages can be installed
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Make only these files
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = ArtefactKind::ALL)]
    only: Vec<ArtefactKind>,
    /// Compress little, to test the tool
    #[arg(long)]
    fast: bool,
    /// Folder of the files [default: target/dist]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// A kind of file in a release.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArtefactKind {
    /// The binary in a tar archive
    Tarball,
    /// CycloneDX document of what is linked
    Sbom,
    /// Debian package with a systemd unit
    Deb,
    /// OCI image of the binary and CA certificates
    Image,
    /// OCI image with Python, Node.js and uv for servers on stdio
    RuntimesImage,
    /// npm package with the binary
    Npm,
    /// PyPI package with the binary
    Wheel,
}

impl ArtefactKind {
    const ALL: [ArtefactKind; 7] = [
        ArtefactKind::Tarball,
        ArtefactKind::Sbom,
        ArtefactKind::Deb,
        ArtefactKind::Image,
        ArtefactKind::RuntimesImage,
        ArtefactKind::Npm,
        ArtefactKind::Wheel,
    ];

    /// Writes the file into the folder of the release, and returns its path.
    fn make(self, release: &Release) -> anyhow::Result<PathBuf> {
        match self {
            ArtefactKind::Tarball => tarball::make(release),
            ArtefactKind::Sbom => sbom::make(release),
            ArtefactKind::Deb => debian::make(release),
            ArtefactKind::Image => image::make(release),
            ArtefactKind::RuntimesImage => image::make_with_runtimes(release),
            ArtefactKind::Npm => npm::make(release),
            ArtefactKind::Wheel => wheel::make(release),
        }
    }
}

fn main() -> anyhow::Result<()> {
    let args = DistArgs::parse();
    let out = args.out.unwrap_or_else(|| xtask_support::root().join("target/dist"));
    let compression = if args.fast { Compression::Fast } else { Compression::Best };
    let release = match &args.binary {
        Some(binary) => Release::of_binary(args.target, binary, out, compression)?,
        None => Release::of_binary(args.target, &build::build(args.target)?, out, compression)?
            .runs_on_glibc(target::OLDEST_GLIBC)?,
    };
    let files = args.only.iter().map(|kind| kind.make(&release)).collect::<anyhow::Result<Vec<_>>>()?;
    checksums::write(&release, &files)?;
    println!("{}", release.summary(&files)?);
    Ok(())
}
