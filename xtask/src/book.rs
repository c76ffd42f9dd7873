//! `cargo xtask docs`: the documentation as a book in `target/docs`, made by mdBook.

mod terminal_picture;

use std::process::Command;

use anyhow::Context;
use xtask_support::process;

/// Arguments that install mdBook from source. Its server, its watcher and its search are not needed.
const MDBOOK: [&str; 8] =
    ["install", "--debug", "--locked", "--no-default-features", "mdbook", "--version", "0.5.4", "--root"];

/// Folder of mdBook, from the root of the repository.
const FOLDER: &str = "target/mdbook";

/// Arguments of `cargo xtask docs`.
#[derive(clap::Args)]
pub(crate) struct BookArgs {
    /// Draw the picture of the README again, with the latest debug build
    #[arg(long)]
    picture: bool,
}

/// Builds the book.
pub(crate) fn run(args: &BookArgs) -> anyhow::Result<()> {
    if args.picture {
        terminal_picture::write(&xtask_support::builds::sibling_program("toolyard")?)?;
    }
    build()
}

/// Builds the book with mdBook, which is installed if it is missing.
pub(crate) fn build() -> anyhow::Result<()> {
    let root = xtask_support::root();
    let program = root.join(FOLDER).join("bin/mdbook");
    if !program.exists() {
        process::run(process::cargo().args(MDBOOK).arg(root.join(FOLDER))).context("install mdBook")?;
    }
    process::run(Command::new(program).arg("build").arg(root.join("docs")))
}
