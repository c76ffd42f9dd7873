//! Settings of what only the builds of releases have.

use crate::cursor::ValueCursor;

/// True if this build has PostgreSQL, the export of telemetry, Kubernetes and gRPC.
pub const IS_FULL_BUILD: bool = cfg!(feature = "full");

/// The remedy of a setting that this build refuses.
const REMEDY: &str = "use the program of a release, or build it with `--features full`";

/// Reports a value that asks for `subject`, if this build does not have it.
pub(crate) fn require(cursor: &ValueCursor<'_>, subject: &str) {
    if !IS_FULL_BUILD {
        cursor.report(cursor.problem(format!("this build has no {subject}")).hint(REMEDY));
    }
}
