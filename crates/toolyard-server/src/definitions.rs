//! Definitions of the operator's resources.

/// Returns the `CustomResourceDefinition`s as YAML; `None` if this build lacks the operator.
#[must_use]
pub fn resource_definitions() -> Option<String> {
    #[cfg(feature = "full")]
    let definitions = Some(toolyard_operator::crd::yaml());
    #[cfg(not(feature = "full"))]
    let definitions = None;
    definitions
}
