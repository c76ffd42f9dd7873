// A tool for agents. It receives a JSON-RPC request and returns the response.
// Everything is synchronous: there is no `async` and no `import`, and each call has a new state.

// Agents read this to decide whether and how to call a tool: describe its purpose and its arguments.
var TOOLS = [
  {
    name: "NAME",
    description: "Returns its text.",
    inputSchema: {
      type: "object",
      properties: { text: { type: "string", description: "The text to return." } },
      required: ["text"],
    },
  },
];

function result(request, value) {
  return { jsonrpc: "2.0", id: request.id, result: value };
}

function error(request, code, message) {
  return { jsonrpc: "2.0", id: request.id, error: { code: code, message: message } };
}

var METHODS = {
  initialize: function (request) {
    return result(request, {
      protocolVersion: "2024-11-05",
      capabilities: { tools: {} },
      serverInfo: { name: "NAME", version: "1.0.0" },
    });
  },
  "tools/list": function (request) {
    return result(request, { tools: TOOLS });
  },
  "tools/call": function (request) {
    var params = request.params || {};
    var args = params.arguments || {};
    if (params.name === "NAME") {
      return result(request, { content: [{ type: "text", text: args.text || "" }] });
    }
    return error(request, -32602, "Unknown tool: " + params.name);
  },
};

// Called once per request. An exception becomes an internal error.
function cortexone_handler(event, context) {
  var request = typeof event === "string" ? JSON.parse(event) : event;
  var method = METHODS[request.method];
  if (!method) return error(request, -32601, "Method not found: " + request.method);
  return method(request);
}
