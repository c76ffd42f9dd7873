//! The groups of built-in tools, by which their tokens are counted.

/// Fields of `builtins` in manifests, with the tools that they enable.
const GROUPS: [(&str, &[&str]); 13] = [
    ("scripts", &["execute_python_script"]),
    (
        "memory",
        &[
            "save_to_working_memory",
            "get_from_working_memory",
            "delete_from_working_memory",
            "search_working_memory",
            "list_working_memory",
            "query_working_memory",
        ],
    ),
    ("guides", &["list_tool_guides", "get_tool_guide"]),
    ("skills", &["save_skill", "get_skill", "list_skills", "delete_skill"]),
    ("search", &["search_tools", "call_tool", "search_known_services"]),
    (
        "mcp",
        &[
            "mcp_list_services",
            "mcp_get_service_details",
            "mcp_invoke_tool",
            "mcp_register_server",
            "mcp_unregister_server",
        ],
    ),
    ("web", &["web_search", "web_browse"]),
    ("code", &["describe_tools", "run_tool_script"]),
    ("schedules", &["schedule_task", "list_scheduled_tasks", "cancel_scheduled_task"]),
    ("agents", &["invoke_agent", "list_known_agents", "get_agent_details"]),
    ("wisps", &["spawn_wisps"]),
    (
        "subagents",
        &[
            "spawn_subagent",
            "cancel_subagent",
            "list_subagents",
            "whiteboard_write",
            "whiteboard_read",
            "whiteboard_list",
            "whiteboard_delete",
        ],
    ),
    (
        "openRouter",
        &["get_credits", "get_api_key_info", "list_models", "list_api_keys", "get_api_key", "get_generation"],
    ),
];

/// Returns the group of a built-in tool.
pub(crate) fn group(tool: &str) -> Option<&'static str> {
    GROUPS.iter().find(|(_, tools)| tools.contains(&tool)).map(|(group, _)| *group)
}
