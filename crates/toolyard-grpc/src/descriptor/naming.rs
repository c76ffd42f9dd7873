//! Assigns names to tools.

use std::collections::HashSet;

use toolyard_core::names::{MAX_LENGTH, with_site_hash};

/// The names in use.
#[derive(Debug, Default)]
pub(super) struct ToolNames(HashSet<String>);

impl ToolNames {
    /// Assigns the name of a method: its full name with underscores, or service and method with a hash of the full name
    /// if that is too long. It depends on nothing else, so that names stay when services come and go.
    pub(super) fn assign(&mut self, service: &str, method: &str) -> String {
        let path = format!("{service}/{method}");
        let name = preferred_name(service, method);
        let mut free = name.clone();
        let mut number = 1;
        // Only a dot and an underscore distinguish them.
        while !self.0.insert(free.clone()) {
            let site = if number == 1 { path.clone() } else { format!("{path} {number}") };
            free = with_site_hash(&name, &site);
            number += 1;
        }
        free
    }
}

/// Returns the name of a method if it is unused.
pub(super) fn preferred_name(service: &str, method: &str) -> String {
    let legal = |text: &str| {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>()
    };
    let name = legal(&format!("{service}.{method}"));
    if name.len() <= MAX_LENGTH {
        return name;
    }
    let short = service.rsplit_once('.').map_or(service, |(_, short)| short);
    with_site_hash(&legal(&format!("{short}.{method}")), &format!("{service}/{method}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_unique() {
        let mut names = ToolNames::default();
        let mut check = |service: &str, method: &str, expected: &str| {
            let name = names.assign(service, method);
            assert_eq!(name, expected, "{service} {method}");
            assert!(toolyard_core::names::is_legal(&name), "{name}");
        };
        check("etcdserverpb.KV", "Range", "etcdserverpb_KV_Range");
        check("Plain", "Get", "Plain_Get");
        check("a.b_C", "D", "a_b_C_D");
        check("a_b.C", "D", "a_b_C_D_a2c45361");
        let service = "google.cloud.aiplatform.v1beta1.PipelineService";
        check(service, "CreateTrainingPipeline", "PipelineService_CreateTrainingPipeline_48be1158");
        let long = "l".repeat(70);
        check("a.S", &long, &format!("S_{}_fd321ce8", "l".repeat(53)));
    }
}
