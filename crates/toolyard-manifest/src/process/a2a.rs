//! The section `a2a`.

use std::time::Duration;

use crate::{
    cursor::ValueCursor,
    field_type::{
        BoundedCountField, CountField, CustomField, FieldType, FlagField, ListField, NonEmptyListField,
        SizeField, TextField, TimeoutField,
    },
    formats::{self, EndpointUrl, FormatError},
    problem::quoted,
    section::{NestedField, nested, section},
};

/// With less not even a small result fits.
const MIN_BYTES: usize = 1 << 10;

section! {
    /// `a2a` of a `Toolyard` document: the gateway as an agent for others.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct A2aSettings = "a2a" {
        /// Name of the agent.
        pub name: String = "name", TextField::new(visible_name).examples(&["toolyard"]), default "toolyard".to_owned();
        /// Purpose of the agent.
        pub description: String = "description", TextField::new(visible_line),
            default "Tools of a gateway as skills of an agent.".to_owned();
        /// URL of the endpoint as other agents reach it, in the agent card. Default: `/a2a` at the host of the request for
        /// the card.
        pub url: Option<EndpointUrl> = "url",
            TextField::new(EndpointUrl::parse).secret().pattern("^https?://[^@]+$")
                .examples(&["https://tools.example.com/a2a"]),
            optional;
        /// Skills of the agent, each of which is a tool. The card names them to everyone; calls need a key with the scopes
        /// `rest` and that of the tool.
        pub skills: Vec<A2aSkill> = "skills",
            CustomField { read: skills, schema: |definitions| SKILLS.schema(definitions) },
            required;
        /// True if the agent also announces itself on the message bus, and takes tasks from it, if there is a `bus.url`. The
        /// caller of these tasks is that of `bus.worker`. The name is part of topics then.
        pub bus: bool = "bus", FlagField, default true;
        /// Push notifications: URLs that clients name are notified of the changes of their tasks. The feature is only enabled
        /// if the section is present.
        pub push: Option<PushSettings> = "push", nested::<PushSettings>(), optional;
        /// Maximum number of tasks that are kept; beyond it those that ended first are forgotten, and new ones are refused
        /// if all are running.
        pub tasks: usize = "tasks", CountField, default 1_000;
        /// Maximum number of kept tasks of one key, or of all callers without a key together. Default: a quarter of `tasks`.
        pub tasks_per_key: Option<usize> = "tasksPerKey", CountField, optional;
        /// Time for which a task is kept after its end.
        pub task_ttl: Duration = "taskTtl", TimeoutField, default Duration::from_secs(60 * 60);
        /// Maximum size of all artifacts of a task, at least 1 KiB; the task fails beyond it.
        pub artifact_bytes: usize = "artifactBytes", SizeField(MIN_BYTES), default 4 << 20;
    }
}

section! {
    /// `a2a.push`: notifications of the changes of tasks. Redirects are not followed.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PushSettings: Default = "a2aPush" {
        /// Maximum number of URLs that are notified of a task.
        pub per_task: usize = "perTask", BoundedCountField { min: 1, max: 100 }, default 4;
        /// Number of attempts to send a notification. After the last one the URL is no longer notified of the task.
        pub attempts: usize = "attempts", BoundedCountField { min: 1, max: 20 }, default 4;
        /// Time until a notification is sent again. It doubles with each attempt, up to a minute.
        pub retry_delay: Duration = "retryDelay", TimeoutField, default Duration::from_secs(1);
        /// Time limit of a request.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(15);
        /// Maximum number of requests at a time; further ones wait.
        pub concurrent: usize = "concurrent", BoundedCountField { min: 1, max: 10_000 }, default 16;
        /// Permit private addresses, such as services of the same cluster.
        pub private: bool = "private", FlagField, default false;
    }
}

section! {
    /// A skill of the gateway as an agent.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct A2aSkill = "a2aSkill" {
        /// Published name of the tool.
        pub tool: String = "tool", TextField::new(tool_name), required;
        /// Id of the skill. Default: the name of the tool.
        pub id: Option<String> = "id", TextField::new(visible_name), optional;
        /// Name of the skill. Default: its id.
        pub name: Option<String> = "name", TextField::new(visible_name), optional;
        /// Purpose of the skill.
        pub description: String = "description", TextField::new(visible_line).examples(&["Answers questions about orders."]),
            required;
        /// Keywords.
        pub tags: Vec<String> = "tags", ListField(TextField::new(visible_line)), default Vec::new();
        /// Example messages.
        pub examples: Vec<String> = "examples", ListField(TextField::new(visible_line)), default Vec::new();
        /// Argument of the tool that gets the text of a message. Without it, a message needs a data part with the arguments.
        pub text_argument: Option<String> = "textArgument", TextField::new(tool_name).examples(&["prompt"]), optional;
    }
}

const SKILLS: NonEmptyListField<NestedField<A2aSkill>> = NonEmptyListField(nested());

impl A2aSettings {
    /// Returns the maximum number of kept tasks of one key.
    #[must_use]
    pub fn tasks_of_key(&self) -> usize {
        self.tasks_per_key.unwrap_or_else(|| self.tasks.div_ceil(4))
    }
}

impl A2aSkill {
    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.tool)
    }
}

/// Reads the skills, whose ids differ.
fn skills(cursor: ValueCursor<'_>) -> Option<Vec<A2aSkill>> {
    let skills = SKILLS.read(cursor.clone())?;
    for (at, skill) in skills.iter().enumerate() {
        if skills[..at].iter().any(|other| other.id().eq_ignore_ascii_case(skill.id())) {
            let problem = cursor.problem(format!("two skills have the id {}", quoted(skill.id())));
            cursor.report(problem.hint("give one of them another `id`"));
        }
    }
    Some(skills)
}

fn tool_name(text: &str) -> Result<String, FormatError> {
    formats::non_empty_name(text).map(|()| text.to_owned())
}

fn visible_name(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError =
        FormatError::new("a name of an agent or a skill", "1 to 100 visible characters in one line");
    let is_valid = text.trim() == text && text.chars().count() <= 100;
    if is_valid { visible_line(text).map_err(|_| INVALID) } else { Err(INVALID) }
}

fn visible_line(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new("a description", "one line of 1 to 1,000 characters");
    let is_valid =
        !text.trim().is_empty() && text.chars().count() <= 1_000 && !text.contains(char::is_control);
    if is_valid { Ok(text.to_owned()) } else { Err(INVALID) }
}
