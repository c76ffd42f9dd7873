//! Labels and annotations that several controllers use.

/// Label of the name of an application.
pub const NAME: &str = "app.kubernetes.io/name";

/// Label of the program that manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Value of [`MANAGED_BY`] for objects of the operator. Watches select by it.
pub const MANAGER: &str = "toolyard-operator";

/// Label of the kind of resource that an object of the group `langop.io` belongs to.
pub const LANGOP_KIND: &str = "langop.io/kind";

/// Value of [`LANGOP_KIND`] in the pods of agents. Policies of tools admit these pods.
pub const LANGUAGE_AGENT: &str = "LanguageAgent";

/// Label of pods that reference tools by an annotation of their workload. Its value is `true`. Policies of tools admit
/// these pods as those of agents.
pub const USES_TOOLS: &str = "toolyard.dev/uses-tools";

/// Annotation with the digest of an object as the operator applied it last.
pub const APPLIED: &str = "toolyard.dev/applied";
