// The TypeScript SDK as a client that validates structured results: takes calls, and prints the output schema of each
// tool and its result as JSON.
//
// usage: large_results.cjs URL legacy|modern KEY CALLS
//
// CALLS is a JSON list of [tool, arguments]. A legacy client is version 1 of the SDK, a modern one version 2. NODE_PATH
// names their folder.

async function connect(url, era, key) {
  const info = { name: "large", version: "1" };
  const options = { requestInit: { headers: { Authorization: `Bearer ${key}` } } };
  if (era === "legacy") {
    const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
  const client = new Client(info, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  return client;
}

async function main(url, era, key, calls) {
  const client = await connect(url, era, key);
  const listed = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool.outputSchema ?? null]));
  const seen = [];
  for (const [tool, arguments_] of calls) {
    const call = { tool, schema: listed.get(tool) ?? null };
    try {
      const result = await client.callTool({ name: tool, arguments: arguments_ });
      call.texts = result.content.map((block) => block.text);
      call.structured = result.structuredContent ?? null;
      call.failed = result.isError ?? false;
    } catch (error) {
      call.refused = error.message;
    }
    seen.push(call);
  }
  console.log(JSON.stringify(seen));
  await client.close();
}

const [url, era, key, calls] = process.argv.slice(2);
main(url, era, key, JSON.parse(calls)).catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
