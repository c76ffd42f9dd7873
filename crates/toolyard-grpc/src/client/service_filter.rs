//! Services that are no tools of their server.

use toolyard_core::LeftOutItem;

use crate::descriptor::{REFLECTION, ServiceTools};

/// Packages of services for the infrastructure around a server. They become tools only if the manifest selects them.
const INFRASTRUCTURE: &[&str] = &["grpc.health.v1.", "grpc.channelz.v1.", "grpc.lb.v1.", "envoy.service."];

/// True for a service whose methods become tools. `is_selected`: the manifest selects services.
pub(super) fn is_for_tools(service: &str, is_selected: bool) -> bool {
    let is_infrastructure = || INFRASTRUCTURE.iter().any(|package| service.starts_with(package));
    !service.starts_with(REFLECTION) && (is_selected || !is_infrastructure())
}

/// Returns the methods that are no tools, with the reasons.
pub(super) fn left_out(services: &ServiceTools) -> Vec<LeftOutItem> {
    let item = |skipped: &crate::descriptor::SkippedMethod| LeftOutItem {
        name: skipped.name().into(),
        reason: skipped.reason().to_string().into(),
    };
    services.skipped().iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_the_infrastructure_are_selected_by_name_only() {
        let check = |service: &str, expected: [bool; 2]| {
            assert_eq!([false, true].map(|selected| is_for_tools(service, selected)), expected, "{service}");
        };
        check("shop.v1.Orders", [true, true]);
        check("grpc.reflection.v1.ServerReflection", [false, false]);
        check("grpc.reflection.v1alpha.ServerReflection", [false, false]);
        check("grpc.health.v1.Health", [false, true]);
        check("grpc.channelz.v1.Channelz", [false, true]);
    }
}
