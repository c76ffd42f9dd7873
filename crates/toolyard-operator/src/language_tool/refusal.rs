//! The reason why a tool does not run as it is specified: an invalid specification, or an image from a registry that is not
//! admitted. Deployments and sidecars obey it alike.

use super::problems::problems;
use super::resource::LanguageTool;
use super::status::{REGISTRY_NOT_ALLOWED, ReconcileFailure};

/// Reason of an invalid specification.
pub(super) const INVALID_SPEC: &str = "InvalidSpec";

/// Returns why no pod may run a tool. An empty list admits all registries.
pub(crate) fn refusal(tool: &LanguageTool, registries: &[String]) -> Option<ReconcileFailure> {
    let problems: Vec<_> = problems(tool).iter().map(ToString::to_string).collect();
    if !problems.is_empty() {
        let message = problems.join("; ");
        return Some(ReconcileFailure { reason: INVALID_SPEC, message, is_final: true });
    }
    if registries.is_empty() {
        return None;
    }
    let is_admitted = |image: &str| registries.iter().any(|allowed| allowed == registry_of(image));
    let refused = images(tool).find(|image| !is_admitted(image))?;
    let registry = registry_of(refused);
    let message = format!("images from {registry} are not admitted, only from {}", registries.join(", "));
    Some(ReconcileFailure { reason: REGISTRY_NOT_ALLOWED, message, is_final: true })
}

/// Returns the images of all containers. One without an image is refused by the server.
fn images(tool: &LanguageTool) -> impl Iterator<Item = &str> {
    let init_containers = tool.spec.deployment.iter().flat_map(|settings| &settings.init_containers);
    let init_images = init_containers.filter_map(|container| container.image.as_deref());
    std::iter::once(tool.spec.image.as_str()).chain(init_images)
}

/// Returns the registry of an image. The first part of a name is a registry if it looks like a host.
fn registry_of(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => "docker.io",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn registry_is_the_host_of_an_image() {
        let check = |image, expected| assert_eq!(registry_of(image), expected, "{image}");
        check("a.example.com/b/c:1", "a.example.com");
        check("localhost/b", "localhost");
        check("a:5000/b", "a:5000");
        check("myregistry/mem0-mcp:latest", "docker.io");
        check("python:3", "docker.io");
    }

    #[test]
    fn images_of_all_containers_need_an_admitted_registry() {
        let check = |spec: Value, expected: Option<&str>| {
            let tool = json!({
                "apiVersion": "langop.io/v1alpha1", "kind": "LanguageTool", "metadata": {"name": "memory"}, "spec": spec,
            });
            let tool: LanguageTool = serde_json::from_value(tool).unwrap();
            let refusal = refusal(&tool, &["a.example.com".to_owned()]);
            assert_eq!(refusal.map(|refusal| refusal.message).as_deref(), expected, "{}", tool.spec.image);
        };
        let refused = Some("images from docker.io are not admitted, only from a.example.com");
        let init = |image| json!({"initContainers": [{"name": "init", "image": image}]});
        check(json!({"image": "a.example.com/b"}), None);
        check(json!({"image": "b"}), refused);
        check(json!({"image": "b", "deploymentMode": "sidecar"}), refused);
        check(json!({"image": "a.example.com/b", "deployment": init("a.example.com/c")}), None);
        check(json!({"image": "a.example.com/b", "deployment": init("c")}), refused);
    }
}
