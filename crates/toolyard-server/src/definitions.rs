//! Definitions of the operator's resources.

/// Returns the `CustomResourceDefinition`s as YAML.
#[must_use]
pub fn resource_definitions() -> String {
    toolyard_operator::crd::yaml()
}
