//! The picture in the README: the output of some commands of the gateway, as SVG.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use tempfile::TempDir;

/// The picture, from the root of the repository.
const PICTURE: &str = "docs/terminal.svg";

/// The address that the commands use by default.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// The program of an installed package.
const INSTALLED: &str = "/usr/bin/toolyard";

/// The commands after `serve`.
const COMMANDS: [&[&str]; 3] = [&["tools"], &["call", "add", "a=1", "b=2"], &["doctor"]];

/// Sizes in pixels.
const LINE: usize = 18;
const CHARACTER: usize = 8;
const MARGIN: usize = 16;

/// Runs the commands with this build of the gateway, and draws them.
pub(super) fn write(toolyard: &Path) -> anyhow::Result<()> {
    let home = TempDir::new()?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(toolyard);
        command.args(arguments).env_clear().env("HOME", home.path()).current_dir(&home);
        command
    };
    let mut serve = command(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("start {}", toolyard.display()))?;
    let output = BufReader::new(serve.stdout.take().context("no output of the gateway")?);
    // The last line of the configuration snippet ends the banner.
    let mut banner = Vec::new();
    for line in output.lines() {
        banner.push(line?);
        if banner.last().is_some_and(|line| line == "}") {
            break;
        }
    }
    let url =
        banner.first().and_then(|line| line.split_whitespace().last()).context("the gateway has no URL")?;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut session = format!("$ toolyard serve &\n{}\n", banner.join("\n"));
    let outputs = COMMANDS.map(|arguments| {
        let output = command(arguments).env("TOOLYARD_URL", format!("http://{address}/mcp")).output()?;
        ensure!(output.status.success(), "toolyard {} failed", arguments.join(" "));
        Ok(format!("\n$ toolyard {}\n{}", arguments.join(" "), String::from_utf8(output.stdout)?))
    });
    serve.kill()?;
    serve.wait()?;
    for output in outputs {
        session.push_str(&output?);
    }
    let session = session.replace(&address, DEFAULT_ADDRESS).replace(&*toolyard.to_string_lossy(), INSTALLED);
    let picture = draw(&session);
    Ok(std::fs::write(xtask_support::root().join(PICTURE), picture)?)
}

/// Draws lines of text; those that begin with `$` are commands.
fn draw(text: &str) -> String {
    let columns = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    let (width, height) = (columns * CHARACTER + 2 * MARGIN, text.lines().count() * LINE + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1b1f24\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d0d7de\" xml:space=\"preserve\">\n"
    );
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let y = MARGIN + (number + 1) * LINE - LINE / 3;
        let color = if line.starts_with('$') { " fill=\"#7ee787\" font-weight=\"bold\"" } else { "" };
        let line = line.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y}\"{color}>{line}</text>");
    }
    svg + "</g>\n</svg>\n"
}

#[test]
fn commands_stand_out_and_text_is_escaped() {
    let svg = draw("$ a <b> & c\n\nout\n");
    assert!(svg.contains("fill=\"#7ee787\" font-weight=\"bold\">$ a &lt;b> &amp; c</text>"), "{svg}");
    assert!(svg.contains("y=\"64\">out</text>"), "{svg}");
    assert!(svg.starts_with("<svg") && svg.contains("viewBox=\"0 0 120 86\""), "{svg}");
}
