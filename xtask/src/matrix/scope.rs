//! Which cells have nothing to show, and why: the section of the specification that says so.

use super::client::{Kind, Revision};
use super::feature::Feature;
use super::server::{Family, Subject};

/// Why a feature is not to be had.
struct Rule {
    feature: Feature,
    /// Which clients and servers it is about.
    applies: fn(Kind, &Subject) -> bool,
    /// The section.
    because: &'static str,
}

const RULES: [Rule; 6] = [
    Rule {
        feature: Feature::Elicit,
        applies: |client, _| client.revision < Revision::V2025_06_18,
        because: "2025-06-18 § changelog: elicitation is new, so that this client has none",
    },
    Rule {
        feature: Feature::Elicit,
        applies: |_, server| server.revision < Revision::V2025_06_18,
        because: "2025-06-18 § changelog: elicitation is new, so that this server has none",
    },
    Rule {
        feature: Feature::Task,
        applies: |client, _| client.revision < Revision::V2025_11_25,
        because: "2025-11-25 § changelog: tasks are new, so that this client has none",
    },
    Rule {
        feature: Feature::Task,
        applies: |client, _| client.revision == Revision::V2025_11_25,
        because: "2025-11-25 § basic/utilities/tasks: experimental, and only where the receiver declares them",
    },
    Rule {
        feature: Feature::Task,
        applies: |_, server| matches!(server.family, Family::Sdk) && !server.revision.is_modern(),
        because: "2026-07-28 § extensions/tasks: an extension of this revision; the SDK has no older form",
    },
    Rule {
        feature: Feature::Task,
        applies: |_, server| matches!(server.family, Family::Python),
        because: "2026-07-28 § extensions/tasks: optional, and the package does not declare it",
    },
];

/// Why this client cannot have this feature of this server, if it cannot.
pub(super) fn because(feature: Feature, client: Kind, server: &Subject) -> Option<&'static str> {
    let rule = RULES.iter().find(|rule| rule.feature == feature && (rule.applies)(client, server))?;
    Some(rule.because)
}
