//! The targets of a release, and their names in each kind of package.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::binary::GlibcVersion;

/// The glibc that a built binary needs: that of Debian 10, RHEL 8 and Ubuntu 20.04, or later.
pub(crate) const OLDEST_GLIBC: GlibcVersion = GlibcVersion { major: 2, minor: 28 };

/// A target that a release can be built for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DistTarget {
    X86_64,
    Aarch64,
}

impl DistTarget {
    /// The target in the terms of Rust.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            DistTarget::X86_64 => "x86_64-unknown-linux-gnu",
            DistTarget::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// `true` if its files have been tested.
    pub(crate) fn is_tried(self) -> bool {
        self == DistTarget::X86_64
    }

    /// `true` if this machine runs its programs.
    pub(crate) fn is_native(self) -> bool {
        self.python_machine() == std::env::consts::ARCH
    }

    /// The architecture in the terms of Debian and of OCI.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            DistTarget::X86_64 => "amd64",
            DistTarget::Aarch64 => "arm64",
        }
    }

    /// `process.arch` of Node.js.
    pub(crate) fn node_cpu(self) -> &'static str {
        match self {
            DistTarget::X86_64 => "x64",
            DistTarget::Aarch64 => "arm64",
        }
    }

    /// The machine in the platform tags of PyPI.
    pub(crate) fn python_machine(self) -> &'static str {
        match self {
            DistTarget::X86_64 => "x86_64",
            DistTarget::Aarch64 => "aarch64",
        }
    }
}

impl ValueEnum for DistTarget {
    fn value_variants<'a>() -> &'a [Self] {
        &[DistTarget::X86_64, DistTarget::Aarch64]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.triple());
        Some(if self.is_tried() { value } else { value.help("untried") })
    }
}
