//! The reader of `sandbox`.

use std::path::PathBuf;

use crate::{
    cursor::{Choice, Cursor},
    forms,
};

/// `sandbox` of a `Toolyard` document: where functions and scripts run, which are other people's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// `isolation`: what happens where this machine lacks walls. They are required: nothing runs without.
    pub isolation: Isolation,
    /// `python`: the interpreter, by its path or its name. `python3`.
    pub python: PathBuf,
    /// `packages`: the folder in which packages of Python are installed, once for all that need the same. None: beside the
    /// store's file, or in the folder for caches of this user.
    pub packages: Option<PathBuf>,
    /// `packagesBytes`: how much that folder may hold; what was used least recently goes. 4 GiB.
    pub packages_bytes: usize,
}

/// What happens where this machine lacks walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// `required`: nothing runs.
    Required,
    /// `best-effort`: programs run within the walls that there are.
    BestEffort,
    /// `none`: programs run without any, as the user of the gateway: for development.
    None,
}

const ISOLATION: Choice<Isolation> = Choice {
    noun: "kind of isolation",
    words: &[
        ("required", Isolation::Required),
        ("best-effort", Isolation::BestEffort),
        ("none", Isolation::None),
    ],
    not_yet: &[],
};

/// With less there is no room for one package of some size.
const LEAST_PACKAGES_BYTES: usize = 64 << 20;

impl Default for SandboxPolicy {
    fn default() -> Self {
        Self {
            isolation: Isolation::Required,
            python: "python3".into(),
            packages: None,
            packages_bytes: 4 << 30,
        }
    }
}

pub(super) fn sandbox(cursor: Cursor<'_>) -> Option<SandboxPolicy> {
    let mut fields = cursor.fields()?;
    let default = SandboxPolicy::default();
    let policy = SandboxPolicy {
        isolation: fields.with_default("isolation", |cursor| cursor.choice(&ISOLATION), default.isolation),
        python: fields.with_default(
            "python",
            |cursor| cursor.parse(forms::file).map(PathBuf::from),
            default.python,
        ),
        packages: fields.optional("packages", |cursor| {
            let path = cursor.clone().parse(forms::file)?;
            Some(cursor.path_from_here(&path))
        }),
        packages_bytes: fields.with_default(
            "packagesBytes",
            |cursor| cursor.size(LEAST_PACKAGES_BYTES),
            default.packages_bytes,
        ),
    };
    fields.finish();
    Some(policy)
}
