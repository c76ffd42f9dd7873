-- A tool for agents. It receives a JSON-RPC request and returns the response.
-- `json` already exists; there are no files and no other modules, and each call begins anew.

-- Agents read this to decide whether and how to call a tool: describe its purpose and its arguments.
local TOOLS = {
  {
    name = "NAME",
    description = "Returns its text.",
    inputSchema = {
      type = "object",
      properties = { text = { type = "string", description = "The text to return." } },
      required = { "text" },
    },
  },
}

local function result(request, value)
  return { jsonrpc = "2.0", id = request.id, result = value }
end

local function failure(request, code, message)
  return { jsonrpc = "2.0", id = request.id, error = { code = code, message = message } }
end

local METHODS = {
  ["initialize"] = function(request)
    return result(request, {
      protocolVersion = "2024-11-05",
      -- An empty table is an object.
      capabilities = { tools = {} },
      serverInfo = { name = "NAME", version = "1.0.0" },
    })
  end,
  ["tools/list"] = function(request)
    return result(request, { tools = TOOLS })
  end,
  ["tools/call"] = function(request)
    local params = request.params or {}
    local arguments = params.arguments or {}
    if params.name == "NAME" then
      return result(request, { content = { { type = "text", text = arguments.text or "" } } })
    end
    return failure(request, -32602, "Unknown tool: " .. tostring(params.name))
  end,
}

-- Called once per request. An error becomes an internal error.
function cortexone_handler(event, context)
  local request = type(event) == "string" and json.decode(event) or event
  local method = METHODS[request.method]
  if not method then
    return failure(request, -32601, "Method not found: " .. tostring(request.method))
  end
  return method(request)
end
