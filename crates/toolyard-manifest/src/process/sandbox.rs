//! The reader of `sandbox`.

use std::path::PathBuf;

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    formats,
};

/// `sandbox` of a `Toolyard` document: the sandbox of functions and scripts, which are untrusted programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// `isolation`: the behaviour if this machine lacks an isolation layer. Default: `required`: nothing runs without.
    pub isolation: IsolationPolicy,
    /// `python`: the interpreter, by path or name. Default: `python3`.
    pub python: PathBuf,
    /// `packages`: the folder of installed Python packages, which programs with the same requirements share. `None`:
    /// next to the store's file, or in the cache folder of this user.
    pub packages: Option<PathBuf>,
    /// `packagesBytes`: maximum size of that folder; the least recently used packages are removed. Default: 4 GiB.
    pub packages_bytes: usize,
    /// `packageHosts`: additional hosts, with or without a port, that serve files of the package index. Default: the
    /// index itself, and the file host of the public index.
    pub package_hosts: Vec<String>,
    /// `buildFromSource`: build packages without a wheel, which runs their code in a sandbox. Default: false: they are
    /// refused.
    pub build_from_source: bool,
    /// `uids`: the users of sandboxed processes if the gateway runs as root.
    pub uids: UidSettings,
}

/// `sandbox.uids` of a `Toolyard` document: user ids, and group ids with the same numbers. Each sandbox has one of its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UidSettings {
    /// `first`: the first id. Default: 2000000000.
    pub first: u32,
    /// `count`: the number of ids. Default: 65536.
    pub count: u32,
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

/// With less there is no room for a single large package.
const MIN_PACKAGES_BYTES: usize = 64 << 20;

impl Default for SandboxPolicy {
    fn default() -> Self {
        Self {
            isolation: IsolationPolicy::Required,
            python: "python3".into(),
            packages: None,
            packages_bytes: 4 << 30,
            package_hosts: Vec::new(),
            build_from_source: false,
            uids: UidSettings::default(),
        }
    }
}

impl Default for UidSettings {
    /// A range that no distribution assigns to users, services or containers.
    fn default() -> Self {
        Self { first: 2_000_000_000, count: 65_536 }
    }
}

pub(super) fn sandbox(cursor: ValueCursor<'_>) -> Option<SandboxPolicy> {
    let mut fields = cursor.fields()?;
    let default = SandboxPolicy::default();
    let policy = SandboxPolicy {
        isolation: fields.with_default("isolation", |cursor| cursor.choice(&ISOLATION), default.isolation),
        python: fields.with_default(
            "python",
            |cursor| cursor.parse(formats::file).map(PathBuf::from),
            default.python,
        ),
        packages: fields.optional("packages", |cursor| {
            let path = cursor.clone().parse(formats::file)?;
            Some(cursor.resolve_path(&path))
        }),
        packages_bytes: fields.with_default(
            "packagesBytes",
            |cursor| cursor.size(MIN_PACKAGES_BYTES),
            default.packages_bytes,
        ),
        package_hosts: fields.with_default(
            "packageHosts",
            |cursor| cursor.list(|item| item.parse(formats::host)),
            default.package_hosts,
        ),
        build_from_source: fields.with_default(
            "buildFromSource",
            ValueCursor::flag,
            default.build_from_source,
        ),
        uids: fields.with_default("uids", uids, default.uids),
    };
    fields.finish();
    Some(policy)
}

fn uids(cursor: ValueCursor<'_>) -> Option<UidSettings> {
    let mut fields = cursor.fields()?;
    let default = UidSettings::default();
    let uids = UidSettings {
        // Lower ids belong to root and the system.
        first: fields.with_default("first", |cursor| cursor.number(1000, 4_200_000_000), default.first),
        count: fields.with_default("count", |cursor| cursor.number(1, 1_000_000), default.count),
    };
    fields.finish();
    Some(uids)
}
