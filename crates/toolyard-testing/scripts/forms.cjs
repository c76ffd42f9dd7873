// The TypeScript SDK as a client that validates structured results: lists all tools, calls the named ones, and prints
// the structured content of each, or its error, as JSON.
//
// usage: forms.cjs URL legacy|modern TOOL...
//
// A legacy client is version 1 of the SDK, a modern one version 2. NODE_PATH names their folder.

async function connect(url, era) {
  const info = { name: "forms", version: "1" };
  if (era === "legacy") {
    const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
  const client = new Client(info, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

async function structured(client, tool) {
  try {
    const result = await client.callTool({ name: tool, arguments: {} });
    return result.isError ? { isError: result.content.map((block) => block.text) } : result.structuredContent;
  } catch (error) {
    return `refused: ${error.message}`;
  }
}

async function main(url, era, tools) {
  const client = await connect(url, era);
  const listed = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool.outputSchema ?? null]));
  const schemas = {};
  const results = {};
  for (const tool of tools) {
    schemas[tool] = listed.get(tool);
    results[tool] = await structured(client, tool);
  }
  console.log(JSON.stringify({ schemas, results }));
  await client.close();
}

const [url, era, ...tools] = process.argv.slice(2);
main(url, era, tools).catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
