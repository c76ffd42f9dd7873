//! How each family of servers shows each feature, as data.
//!
//! `NAME` stands for the name of the client, which is another one for each cell's client: what one of them causes is
//! told from what another does.

use serde_json::Value;

/// A call of a tool.
pub(super) struct Step {
    pub(super) tool: &'static str,
    /// JSON.
    pub(super) arguments: &'static str,
    /// What its text contains.
    pub(super) says: &'static str,
}

impl Step {
    pub(super) fn arguments(&self, name: &str) -> Value {
        serde_json::from_str(&self.arguments.replace("NAME", name)).unwrap_or_default()
    }

    pub(super) fn says(&self, name: &str) -> String {
        self.says.replace("NAME", name)
    }
}

/// Values that a server offers for the argument of a prompt.
pub(super) struct Completion {
    pub(super) prompt: &'static str,
    pub(super) argument: &'static str,
    pub(super) typed: &'static str,
    pub(super) values: &'static [&'static str],
}

/// A list, and what is told of its changes.
pub(super) struct List {
    /// What there is of it: `tools`.
    pub(super) kind: &'static str,
    /// The member that tells one from another.
    pub(super) key: &'static str,
    /// What a modern client asks to be told.
    pub(super) filter: &'static str,
}

pub(super) const TOOLS: List = List { kind: "tools", key: "name", filter: "toolsListChanged" };
pub(super) const RESOURCES: List = List { kind: "resources", key: "uri", filter: "resourcesListChanged" };

/// Everything that is done to a server.
pub(super) struct Script {
    pub(super) call: Step,
    pub(super) progress: Step,
    /// A call that goes on until it is cancelled, and tells of its progress first.
    pub(super) cancel: Step,
    /// Tells which calls were cancelled. Where a server does not, what reaches it is looked at.
    pub(super) cancelled: Option<Step>,
    pub(super) elicit: Step,
    pub(super) sample: Step,
    pub(super) roots: Step,
    pub(super) log: Step,
    /// What the log then has.
    pub(super) logged: &'static str,
    /// A resource, and what changes it.
    pub(super) resource: &'static str,
    pub(super) touch: Step,
    pub(super) complete: Completion,
    pub(super) task: Step,
    /// What makes a list longer, which list, and what is in it then.
    pub(super) grow: Step,
    pub(super) list: List,
    pub(super) grown: &'static str,
}

/// The fixtures, of the SDK and in Python.
pub(super) const FIXTURE: Script = Script {
    call: Step { tool: "echo", arguments: r#"{"text": "I am NAME"}"#, says: "I am NAME" },
    progress: Step { tool: "steps", arguments: "{}", says: "All steps are done." },
    cancel: Step { tool: "wait", arguments: r#"{"key": "NAME"}"#, says: "" },
    cancelled: Some(Step { tool: "ended", arguments: "{}", says: "NAME" }),
    elicit: Step { tool: "ask", arguments: "{}", says: "NAME" },
    sample: Step { tool: "sample", arguments: "{}", says: "NAME" },
    roots: Step { tool: "roots", arguments: "{}", says: "file:///NAME" },
    log: Step { tool: "log", arguments: r#"{"text": "logged for NAME"}"#, says: "Logged." },
    logged: "logged for NAME",
    resource: "matrix://note",
    touch: Step { tool: "touch", arguments: "{}", says: "Touched." },
    complete: Completion {
        prompt: "greeting",
        argument: "place",
        typed: "par",
        values: &["paris", "park", "party"],
    },
    task: Step { tool: "job", arguments: "{}", says: "The job is done." },
    grow: Step { tool: "grow", arguments: r#"{"name": "grown-NAME"}"#, says: "one tool more" },
    list: TOOLS,
    grown: "grown-NAME",
};

/// npm's `server-everything`. What it toggles is asked for until it is on.
pub(super) const EVERYTHING: Script = Script {
    call: Step { tool: "echo", arguments: r#"{"message": "I am NAME"}"#, says: "Echo: I am NAME" },
    progress: Step {
        tool: "trigger-long-running-operation",
        arguments: r#"{"duration": 0.3, "steps": 3}"#,
        says: "completed",
    },
    cancel: Step {
        tool: "trigger-long-running-operation",
        arguments: r#"{"duration": 20, "steps": 200}"#,
        says: "",
    },
    cancelled: None,
    elicit: Step { tool: "trigger-elicitation-request", arguments: "{}", says: "NAME" },
    sample: Step {
        tool: "trigger-sampling-request",
        arguments: r#"{"prompt": "Who are you?"}"#,
        says: "NAME",
    },
    roots: Step { tool: "get-roots-list", arguments: "{}", says: "file:///NAME" },
    log: Step { tool: "toggle-simulated-logging", arguments: "{}", says: "Started" },
    logged: "level",
    resource: "demo://resource/static/document/architecture.md",
    touch: Step { tool: "toggle-subscriber-updates", arguments: "{}", says: "Started" },
    complete: Completion {
        prompt: "completable-prompt",
        argument: "department",
        typed: "S",
        values: &["Sales", "Support"],
    },
    task: Step { tool: "simulate-research-query", arguments: r#"{"topic": "NAME"}"#, says: "NAME" },
    grow: Step {
        tool: "gzip-file-as-resource",
        arguments: r#"{"name": "NAME.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}"#,
        says: "",
    },
    list: RESOURCES,
    grown: "demo://resource/session/NAME.gz",
};
