//! The section `sandbox`.

use std::path::PathBuf;

use crate::{
    cursor::KeywordChoice,
    field_type::{FileField, FlagField, KeywordField, ListField, NumberField, SizeField, TextField},
    formats,
    section::{nested, section},
};

/// With less there is no room for a single large package.
const MIN_PACKAGES_BYTES: usize = 64 << 20;

section! {
    /// `sandbox` of a `Toolyard` document: the sandbox of functions and scripts, which are untrusted programs.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SandboxPolicy: Default = "sandbox" {
        /// Behaviour if this machine lacks an isolation layer: nothing runs (`required`), programs run with the
        /// available layers (`best-effort`), or without isolation as the user of the gateway (`none`, for development).
        pub isolation: IsolationPolicy = "isolation", KeywordField(&ISOLATION), default IsolationPolicy::Required;
        /// Python 3 interpreter, by path or name.
        pub python: PathBuf = "python", TextField::new(|text| formats::file(text).map(PathBuf::from)),
            default PathBuf::from("python3");
        /// Folder of installed Python packages, which programs with the same requirements share. Default: in the cache
        /// folder of this user.
        pub packages: Option<PathBuf> = "packages", FileField, optional;
        /// Maximum size of that folder, at least 64 MiB; the least recently used packages are removed.
        pub packages_bytes: usize = "packagesBytes", SizeField(MIN_PACKAGES_BYTES), default 4 << 30;
        /// Additional hosts, with or without a port, that serve files of the package index. An installation reaches the
        /// index that pip is configured for, and these.
        pub package_hosts: Vec<String> = "packageHosts", ListField(TextField::new(formats::host)),
            default Vec::new();
        /// Build packages without a wheel, which runs their code in a sandbox. That code can read the credentials of
        /// the index.
        pub build_from_source: bool = "buildFromSource", FlagField, default false;
        /// Users of functions and scripts if the gateway runs as root: each process tree has a uid of its own, and the
        /// gid with the same number. Other gateways use `/etc/subuid` and `/etc/subgid`.
        pub uids: UidSettings = "uids", nested::<UidSettings>(), described UidSettings::default();
    }
}

section! {
    /// `sandbox.uids` of a `Toolyard` document: user ids, and group ids with the same numbers. Each sandbox has one of
    /// its own.
    ///
    /// The default is a range that no distribution assigns to users, services or containers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UidSettings: Default = "uids" {
        /// First uid.
        ///
        /// Lower ids than the minimum belong to root and the system.
        pub first: u32 = "first", NumberField { min: 1000, max: 4_200_000_000 }, default 2_000_000_000;
        /// Number of uids.
        pub count: u32 = "count", NumberField { min: 1, max: 1_000_000 }, default 65_536;
    }
}

/// The behaviour if this machine lacks an isolation layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationPolicy {
    /// `required`: nothing runs.
    Required,
    /// `best-effort`: programs run with the available layers.
    BestEffort,
    /// `none`: programs run without isolation, as the user of the gateway. For development.
    None,
}

const ISOLATION: KeywordChoice<IsolationPolicy> = KeywordChoice {
    noun: "kind of isolation",
    words: &[
        ("required", IsolationPolicy::Required),
        ("best-effort", IsolationPolicy::BestEffort),
        ("none", IsolationPolicy::None),
    ],
    unsupported: &[],
};
