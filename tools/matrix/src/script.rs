//! The steps that exercise each feature, by family of servers.
//!
//! `NAME` stands for the unique name of the client, so that effects of different clients can be told apart.

use serde_json::Value;

/// A call of a tool.
pub(super) struct ToolStep {
    pub(super) tool: &'static str,
    /// As JSON.
    pub(super) arguments: &'static str,
    /// Expected part of the text.
    pub(super) expected_text: &'static str,
}

impl ToolStep {
    pub(super) fn arguments(&self, name: &str) -> Value {
        serde_json::from_str(&self.arguments.replace("NAME", name)).unwrap_or_default()
    }

    pub(super) fn expected_text(&self, name: &str) -> String {
        self.expected_text.replace("NAME", name)
    }
}

/// Values that a server offers for the argument of a prompt.
pub(super) struct CompletionStep {
    pub(super) prompt: &'static str,
    pub(super) argument: &'static str,
    pub(super) typed: &'static str,
    pub(super) values: &'static [&'static str],
}

/// A kind of list, and its notifications.
pub(super) struct ListKind {
    /// Its name in methods: `tools`.
    pub(super) kind: &'static str,
    /// The member that identifies an entry.
    pub(super) key: &'static str,
    /// The member of a modern subscription.
    pub(super) filter: &'static str,
}

pub(super) const TOOLS: ListKind = ListKind { kind: "tools", key: "name", filter: "toolsListChanged" };
pub(super) const RESOURCES: ListKind =
    ListKind { kind: "resources", key: "uri", filter: "resourcesListChanged" };

/// The steps for all features.
pub(super) struct FeatureScript {
    pub(super) call: ToolStep,
    pub(super) progress: ToolStep,
    /// A call that runs until it is cancelled, and first reports progress.
    pub(super) cancel: ToolStep,
    /// Returns the cancelled calls. Without this step the traffic to the server is inspected.
    pub(super) cancelled: Option<ToolStep>,
    pub(super) elicit: ToolStep,
    pub(super) sample: ToolStep,
    pub(super) roots: ToolStep,
    pub(super) log: ToolStep,
    /// Expected part of the log message.
    pub(super) log_text: &'static str,
    /// A resource, and the call that changes it.
    pub(super) resource: &'static str,
    pub(super) touch: ToolStep,
    pub(super) complete: CompletionStep,
    pub(super) task: ToolStep,
    /// A call that makes a list grow, the list, and its new entry.
    pub(super) grow: ToolStep,
    pub(super) list: ListKind,
    pub(super) new_entry: &'static str,
}

/// The fixtures, on our SDK and in Python.
pub(super) const FIXTURE: FeatureScript = FeatureScript {
    call: ToolStep { tool: "echo", arguments: r#"{"text": "I am NAME"}"#, expected_text: "I am NAME" },
    progress: ToolStep { tool: "steps", arguments: "{}", expected_text: "All steps are done." },
    cancel: ToolStep { tool: "wait", arguments: r#"{"key": "NAME"}"#, expected_text: "" },
    cancelled: Some(ToolStep { tool: "ended", arguments: "{}", expected_text: "NAME" }),
    elicit: ToolStep { tool: "ask", arguments: "{}", expected_text: "NAME" },
    sample: ToolStep { tool: "sample", arguments: "{}", expected_text: "NAME" },
    roots: ToolStep { tool: "roots", arguments: "{}", expected_text: "file:///NAME" },
    log: ToolStep { tool: "log", arguments: r#"{"text": "logged for NAME"}"#, expected_text: "Logged." },
    log_text: "logged for NAME",
    resource: "matrix://note",
    touch: ToolStep { tool: "touch", arguments: "{}", expected_text: "Touched." },
    complete: CompletionStep {
        prompt: "greeting",
        argument: "place",
        typed: "par",
        values: &["paris", "park", "party"],
    },
    task: ToolStep { tool: "job", arguments: "{}", expected_text: "The job is done." },
    grow: ToolStep { tool: "grow", arguments: r#"{"name": "grown-NAME"}"#, expected_text: "one tool more" },
    list: TOOLS,
    new_entry: "grown-NAME",
};

/// npm's `server-everything`. Its toggles are called until they are on.
pub(super) const EVERYTHING: FeatureScript = FeatureScript {
    call: ToolStep {
        tool: "echo",
        arguments: r#"{"message": "I am NAME"}"#,
        expected_text: "Echo: I am NAME",
    },
    progress: ToolStep {
        tool: "trigger-long-running-operation",
        arguments: r#"{"duration": 0.3, "steps": 3}"#,
        expected_text: "completed",
    },
    cancel: ToolStep {
        tool: "trigger-long-running-operation",
        arguments: r#"{"duration": 20, "steps": 200}"#,
        expected_text: "",
    },
    cancelled: None,
    elicit: ToolStep { tool: "trigger-elicitation-request", arguments: "{}", expected_text: "NAME" },
    sample: ToolStep {
        tool: "trigger-sampling-request",
        arguments: r#"{"prompt": "Who are you?"}"#,
        expected_text: "NAME",
    },
    roots: ToolStep { tool: "get-roots-list", arguments: "{}", expected_text: "file:///NAME" },
    log: ToolStep { tool: "toggle-simulated-logging", arguments: "{}", expected_text: "Started" },
    log_text: "level",
    resource: "demo://resource/static/document/architecture.md",
    touch: ToolStep { tool: "toggle-subscriber-updates", arguments: "{}", expected_text: "Started" },
    complete: CompletionStep {
        prompt: "completable-prompt",
        argument: "department",
        typed: "S",
        values: &["Sales", "Support"],
    },
    task: ToolStep {
        tool: "simulate-research-query",
        arguments: r#"{"topic": "NAME"}"#,
        expected_text: "NAME",
    },
    grow: ToolStep {
        tool: "gzip-file-as-resource",
        arguments: r#"{"name": "NAME.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}"#,
        expected_text: "",
    },
    list: RESOURCES,
    new_entry: "demo://resource/session/NAME.gz",
};
