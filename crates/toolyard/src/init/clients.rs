//! The files in which MCP clients keep their servers.

use std::path::PathBuf;

use clap::ValueEnum;
use toolyard_manifest::ClientFile;

/// A client whose servers can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ImportClient {
    /// Claude Desktop
    Claude,
    /// Claude Code: user, this project, and .mcp.json here
    ClaudeCode,
    /// Cursor: user and project
    Cursor,
    /// VS Code: user and workspace
    Vscode,
    /// Codex: user and project
    Codex,
    /// Zed: user and project
    Zed,
}

impl ImportClient {
    /// The name of the client for people.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Codex => "Codex",
            Self::Zed => "Zed",
        }
    }

    /// Returns the existing files of the client: those of the user, then those of the current directory.
    pub(super) fn files(self) -> Vec<ClientFile> {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let paths = self.paths(&variable, cfg!(target_os = "macos"));
        let mut files: Vec<_> = paths.into_iter().map(|path| ClientFile { path, project: None }).collect();
        if self == Self::ClaudeCode
            && let (Some(user), Ok(folder)) = (files.first().cloned(), std::env::current_dir())
            && let Some(project) = folder.to_str()
        {
            // `claude mcp add` writes into the user's file, below the project, unless a scope is given.
            files.insert(1, ClientFile { path: user.path, project: Some(project.to_owned()) });
        }
        files.retain(|file| file.path.is_file());
        files
    }

    /// Returns the paths of its files, those of the user first. Those of the user are missing without a home directory.
    fn paths(self, variable: &dyn Fn(&str) -> Option<PathBuf>, is_macos: bool) -> Vec<PathBuf> {
        let home = || variable("HOME").filter(|home| home.is_absolute());
        let config = || {
            variable("XDG_CONFIG_HOME")
                .filter(|folder| folder.is_absolute())
                .or_else(|| Some(home()?.join(".config")))
        };
        // Applications on macOS have their own folder, except for some that follow XDG.
        let application =
            || if is_macos { Some(home()?.join("Library/Application Support")) } else { config() };
        let below = |folder: Option<PathBuf>, path: &str| folder.map(|folder| folder.join(path));
        let here = |path: &str| Some(PathBuf::from(path));
        let paths = match self {
            Self::Claude => vec![below(application(), "Claude/claude_desktop_config.json")],
            Self::ClaudeCode => vec![below(home(), ".claude.json"), here(".mcp.json")],
            Self::Cursor => vec![below(home(), ".cursor/mcp.json"), here(".cursor/mcp.json")],
            Self::Vscode => vec![
                below(application(), "Code/User/mcp.json"),
                below(application(), "Code/User/settings.json"),
                here(".vscode/mcp.json"),
                here(".vscode/settings.json"),
            ],
            Self::Codex => {
                let folder = variable("CODEX_HOME").filter(|folder| folder.is_absolute());
                let folder = folder.or_else(|| Some(home()?.join(".codex")));
                vec![below(folder, "config.toml"), here(".codex/config.toml")]
            }
            Self::Zed => vec![below(config(), "zed/settings.json"), here(".zed/settings.json")],
        };
        paths.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_clients() {
        let check = |client: ImportClient, variables: &[(&str, &str)], is_macos: bool, expected: &[&str]| {
            let variable = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
            };
            let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(client.paths(&variable, is_macos), expected, "{client:?} {variables:?}");
        };
        let home = ("HOME", "/me");
        let xdg = ("XDG_CONFIG_HOME", "/xdg");
        let desktop = "Claude/claude_desktop_config.json";
        check(ImportClient::Claude, &[home], false, &[&format!("/me/.config/{desktop}")]);
        check(ImportClient::Claude, &[home, xdg], false, &[&format!("/xdg/{desktop}")]);
        check(ImportClient::Claude, &[home], true, &[&format!("/me/Library/Application Support/{desktop}")]);
        check(ImportClient::ClaudeCode, &[home], false, &["/me/.claude.json", ".mcp.json"]);
        check(ImportClient::Cursor, &[], false, &[".cursor/mcp.json"]);
        check(
            ImportClient::Codex,
            &[home, ("CODEX_HOME", "/codex")],
            true,
            &["/codex/config.toml", ".codex/config.toml"],
        );
        check(ImportClient::Zed, &[home], true, &["/me/.config/zed/settings.json", ".zed/settings.json"]);
    }
}
