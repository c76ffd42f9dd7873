//! The unit of the service (systemd.service(5)).

use std::fmt;
use std::path::PathBuf;

use anyhow::Context;
use toolyard_manifest::ListenAddress;

/// Name of the unit.
pub(super) const UNIT_NAME: &str = "toolyard.service";

/// The first line, by which a unit of ours is recognized.
const MARK: &str = "# Written by `toolyard service install`.";

/// The unit of a gateway.
pub(super) struct ServiceUnit {
    command: Vec<String>,
    /// Folders in which the programs of servers are found.
    path: Option<String>,
}

impl ServiceUnit {
    /// Creates the unit of a gateway with these manifests and addresses.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    pub(super) fn of(
        manifests: &[PathBuf],
        listen: &[ListenAddress],
        grpc: &[ListenAddress],
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the path of the toolyard program")?;
        let text = |path: &PathBuf| {
            path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
        };
        let mut command = vec![text(&program)?, "serve".to_owned()];
        for manifest in manifests {
            command.extend(["-f".to_owned(), text(manifest)?]);
        }
        for (option, addresses) in [("--listen", listen), ("--grpc", grpc)] {
            let words = addresses.iter().flat_map(|address| [option.to_owned(), address.to_string()]);
            command.extend(words);
        }
        let path = std::env::var("PATH").ok().filter(|path| !path.is_empty());
        Ok(Self { command, path })
    }

    /// True if a text is a unit of this command.
    pub(super) fn is_ours(text: &str) -> bool {
        text.starts_with(MARK)
    }
}

impl fmt::Display for ServiceUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command: Vec<_> = self.command.iter().map(|word| quoted(word, true)).collect();
        let path = self.path.as_ref().map(|path| {
            // Launchers such as npx and uvx are where the shell of the user finds them.
            format!("Environment={}\n", quoted(&format!("PATH={path}"), false))
        });
        write!(
            f,
            "{MARK}\n\
             # `systemctl --user edit toolyard` changes settings; installing again replaces this file.\n\
             [Unit]\n\
             Description=Toolyard, a gateway for the tools of agents\n\
             \n\
             [Service]\n\
             Type=exec\n\
             ExecStart={}\n\
             ExecReload=/bin/kill -HUP $MAINPID\n\
             {}EnvironmentFile=-%E/toolyard/environment\n\
             Restart=on-failure\n\
             RestartSec=2\n\
             # Running calls may end: `timeouts.drain`.\n\
             TimeoutStopSec=90\n\
             KillMode=mixed\n\
             # Limits of sandboxed code.\n\
             Delegate=yes\n\
             UMask=0077\n\
             \n\
             [Install]\n\
             WantedBy=default.target\n",
            command.join(" "),
            path.unwrap_or_default(),
        )
    }
}

/// Quotes a word of a setting. In commands `$` refers to a variable; `%` is a specifier everywhere.
fn quoted(word: &str, is_command: bool) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' => text.push_str("%%"),
            '$' if is_command => text.push_str("$$"),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_quoted() {
        let check = |word: &str, is_command: bool, expected: &str| {
            assert_eq!(quoted(word, is_command), expected, "{word}");
        };
        check("/opt/toolyard", true, "\"/opt/toolyard\"");
        check("a b\"c\\d", true, r#""a b\"c\\d""#);
        check("50% $HOME", true, "\"50%% $$HOME\"");
        check("PATH=/a:$b", false, "\"PATH=/a:$b\"");
        check("a\nb", true, "\"a\\nb\"");
    }
}
