//! Requirements of a binary on the system that runs it, as `readelf` shows them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, ensure};

/// A version of the GNU C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GlibcVersion {
    pub major: u32,
    pub minor: u32,
}

impl fmt::Display for GlibcVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for GlibcVersion {
    type Err = anyhow::Error;

    /// Reads `2.28`, or `2.2.5`, whose last number makes no difference here.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut parts = text.split('.');
        let mut number = || parts.next()?.parse().ok();
        let version = number().zip(number()).map(|(major, minor)| GlibcVersion { major, minor });
        version.with_context(|| format!("no version of glibc: {text}"))
    }
}

/// Requirements of a dynamically linked program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BinaryNeeds {
    /// The newest version that one of its symbols has.
    pub glibc: GlibcVersion,
    /// Names of its shared libraries, such as `libc.so.6`.
    pub libraries: BTreeSet<String>,
}

impl BinaryNeeds {
    /// Reads the dynamic section and the versions of the symbols of a program.
    pub(crate) fn of(program: &Path) -> anyhow::Result<Self> {
        let mut readelf = Command::new("readelf");
        readelf.args(["--dynamic", "--version-info", "--wide"]).arg(program).env("LC_ALL", "C");
        let output = readelf.output().context("cannot run readelf: install binutils")?;
        ensure!(output.status.success(), "readelf cannot read {}", program.display());
        Self::of_listing(&String::from_utf8_lossy(&output.stdout))
            .with_context(|| format!("{} is not linked with glibc", program.display()))
    }

    fn of_listing(listing: &str) -> anyhow::Result<Self> {
        let versions = listing.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
        let glibc = versions.filter_map(|version| version.parse().ok()).max().context("no GLIBC_ symbol")?;
        let libraries = listing.lines().filter_map(shared_library).map(str::to_owned).collect();
        Ok(Self { glibc, libraries })
    }

    /// Returns the Debian packages of its libraries; glibc with the version that is needed.
    pub(crate) fn debian_packages(&self) -> anyhow::Result<Vec<String>> {
        let packages = self.libraries.iter().map(|library| match library.as_str() {
            "libgcc_s.so.1" => Ok("libgcc-s1".to_owned()),
            "libc.so.6" | "libm.so.6" | "libpthread.so.0" | "libdl.so.2" | "librt.so.1" | "libutil.so.1" => {
                Ok(format!("libc6 (>= {})", self.glibc))
            }
            loader if loader.starts_with("ld-linux") => Ok(format!("libc6 (>= {})", self.glibc)),
            other => Err(anyhow::anyhow!("the binary needs {other}, which no known package has")),
        });
        Ok(packages.collect::<anyhow::Result<BTreeSet<_>>>()?.into_iter().collect())
    }
}

/// Returns the library in a line such as `0x1 (NEEDED)  Shared library: [libc.so.6]`.
fn shared_library(line: &str) -> Option<&str> {
    line.split_once("Shared library: [")?.1.strip_suffix(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "
 0x0000000000000001 (NEEDED)             Shared library: [libgcc_s.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
Version needs section '.gnu.version_r' contains 2 entries:
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 12
  0x0020:   Name: GLIBC_2.28  Flags: none  Version: 11
  0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 2
  0x0040:   Name: GCC_4.2.0  Flags: none  Version: 3
";

    #[test]
    fn newest_symbol_decides_the_version() {
        let needs = BinaryNeeds::of_listing(LISTING).unwrap();
        assert_eq!(needs.glibc, GlibcVersion { major: 2, minor: 28 });
        assert_eq!(needs.debian_packages().unwrap(), ["libc6 (>= 2.28)", "libgcc-s1"]);
    }

    #[test]
    fn library_without_a_package_is_an_error() {
        let needs = BinaryNeeds::of_listing(&LISTING.replace("libm.so.6", "libssl.so.3")).unwrap();
        let error = needs.debian_packages().unwrap_err();
        assert_eq!(error.to_string(), "the binary needs libssl.so.3, which no known package has");
    }

    #[test]
    fn static_program_is_refused() {
        assert!(BinaryNeeds::of_listing("There is no dynamic section in this file.").is_err());
    }
}
