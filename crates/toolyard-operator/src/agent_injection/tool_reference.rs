//! References of agents to tools: the annotation of a workload, and the `spec` of a LanguageAgent.

use serde_json::Value;

use super::problem::InjectionProblem;
use crate::text::{is_dns_label, shortened};

/// Annotation of a Deployment or a StatefulSet that names tools, separated by commas: `NAME` for a tool of the same
/// namespace, `NAMESPACE/NAME` for another one.
pub const TOOLS_ANNOTATION: &str = "langop.io/tools";

/// Maximum number of references of an agent. Further ones are ignored.
pub const MAX_REFERENCES: usize = 128;

/// Maximum length of an invalid entry in a message, in bytes.
const QUOTED_BYTES: usize = 80;

/// A tool that an agent refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReference {
    /// The name of the LanguageTool.
    pub name: String,
    /// Its namespace. `None`: the namespace of the agent.
    pub namespace: Option<String>,
    /// `false` if the tool is not to be injected.
    pub enabled: bool,
}

/// The references of one agent, and the entries that are not references.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentReferences {
    /// In the order of the agent's specification.
    pub references: Vec<ToolReference>,
    /// Entries that are ignored.
    pub problems: Vec<InjectionProblem>,
}

impl AgentReferences {
    /// Reads the value of [`TOOLS_ANNOTATION`].
    #[must_use]
    pub fn of_annotation(text: &str) -> Self {
        let mut read = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (namespace, name) = match entry.split_once('/') {
                Some((namespace, name)) => (Some(namespace), name),
                None => (None, entry),
            };
            read.add(name, namespace, true);
        }
        read
    }

    /// Reads `spec.tools` of a LanguageAgent, or `spec.toolRefs` of older ones. No seed defines this resource, so that
    /// every other form is ignored with a problem.
    #[must_use]
    pub fn of_agent(spec: &Value) -> Self {
        let mut read = Self::default();
        let lists = ["tools", "toolRefs"].into_iter().filter_map(|field| spec.get(field)?.as_array());
        for entry in lists.flatten() {
            match entry.get("name").and_then(Value::as_str) {
                Some(name) => {
                    let namespace = entry.get("namespace").and_then(Value::as_str);
                    let enabled = entry.get("enabled").and_then(Value::as_bool).unwrap_or(true);
                    read.add(name, namespace.filter(|namespace| !namespace.is_empty()), enabled);
                }
                None => read.problems.push(InjectionProblem::InvalidName(String::new())),
            }
        }
        read
    }

    /// Appends the references of another source.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.problems.extend(other.problems);
        for reference in other.references {
            self.push(reference);
        }
        self
    }

    /// Returns the references to inject.
    pub fn enabled(&self) -> impl Iterator<Item = &ToolReference> {
        self.references.iter().filter(|reference| reference.enabled)
    }

    fn add(&mut self, name: &str, namespace: Option<&str>, enabled: bool) {
        if !is_dns_label(name) || namespace.is_some_and(|namespace| !is_dns_label(namespace)) {
            let entry = namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
            return self.problems.push(InjectionProblem::InvalidName(shortened(&entry, QUOTED_BYTES)));
        }
        let namespace = namespace.map(str::to_owned);
        self.push(ToolReference { name: name.to_owned(), namespace, enabled });
    }

    fn push(&mut self, reference: ToolReference) {
        if self.references.len() < MAX_REFERENCES {
            self.references.push(reference);
        } else if !self.problems.contains(&InjectionProblem::TooManyReferences) {
            self.problems.push(InjectionProblem::TooManyReferences);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Formats references: `name`, `namespace/name`, `-name` if disabled, `!problem`.
    fn formatted(read: &AgentReferences) -> String {
        let reference = |reference: &ToolReference| {
            let namespace = reference.namespace.as_ref().map(|namespace| format!("{namespace}/"));
            let sign = if reference.enabled { "" } else { "-" };
            format!("{sign}{}{}", namespace.unwrap_or_default(), reference.name)
        };
        let references = read.references.iter().map(reference);
        references
            .chain(read.problems.iter().map(|problem| format!("!{problem}")))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn annotation_names_tools_in_order() {
        let check = |text: &str, expected: &str| {
            assert_eq!(formatted(&AgentReferences::of_annotation(text)), expected, "{text}");
        };
        check("", "");
        check("memory", "memory");
        check(" memory , search,,", "memory search");
        check("team/memory", "team/memory");
        check("Memory", "!`Memory` is not the name of a LanguageTool: expected NAME or NAMESPACE/NAME");
        check("a/b/c", "!`a/b/c` is not the name of a LanguageTool: expected NAME or NAMESPACE/NAME");
        check("-a", "!`-a` is not the name of a LanguageTool: expected NAME or NAMESPACE/NAME");
        check("/a", "!`/a` is not the name of a LanguageTool: expected NAME or NAMESPACE/NAME");
    }

    #[test]
    fn agents_of_both_generations_are_read() {
        let check = |spec: Value, expected: &str| {
            assert_eq!(formatted(&AgentReferences::of_agent(&spec)), expected, "{spec}");
        };
        check(json!({}), "");
        check(json!({"tools": [{"name": "a"}, {"name": "b", "enabled": false}]}), "a -b");
        check(json!({"tools": [{"name": "a", "enabled": true}]}), "a");
        let older = json!([{"name": "a", "namespace": "n", "enabled": true, "requireApproval": true}]);
        check(json!({"toolRefs": older}), "n/a");
        check(json!({"toolRefs": [{"name": "a", "namespace": ""}]}), "a");
        check(json!({"tools": "a"}), "");
        check(
            json!({"tools": ["a"]}),
            "!`` is not the name of a LanguageTool: expected NAME or NAMESPACE/NAME",
        );
    }

    #[test]
    fn number_of_references_is_limited() {
        let names = (0..MAX_REFERENCES + 5).map(|number| format!("t{number}")).collect::<Vec<_>>().join(",");
        let read = AgentReferences::of_annotation(&names);
        assert_eq!(read.references.len(), MAX_REFERENCES);
        assert_eq!(read.problems, [InjectionProblem::TooManyReferences]);
    }
}
