-- The handler of every script in Lua: it gives the script its globals, runs it, and returns {value}.
function cortexone_handler(event, context, host)
  local last = 0
  local results = {} -- results that arrived, by the id of the request
  local inside = setmetatable({}, { __mode = "k" }) -- coroutines of `parallel`

  local failure_text = {
    __tostring = function(failure)
      return (failure.line and failure.line .. ": " or "") .. "ToolError: " .. tostring(failure.message)
    end,
  }

  -- Returns the place of the script that runs, such as `script:3`; nil behind a tail call, as in `return tools.f()`.
  local function place()
    for level = 2, 12 do
      local _, text = pcall(error, "", level)
      local found = text:match("^(" .. event.name .. ":%d+)")
      if found then return found end
    end
  end

  local function receive()
    local id, is_error, value = host.receive()
    results[id] = { is_error = is_error, value = value }
  end

  local function request(send)
    last = last + 1
    local id = last
    send(id)
    if inside[coroutine.running()] then
      coroutine.yield(id)
    else
      while not results[id] do receive() end
    end
    local result = results[id]
    results[id] = nil
    if not result.is_error then return result.value end
    local failure = type(result.value) == "table" and result.value or { message = "the call failed" }
    failure.line = place()
    error(setmetatable(failure, failure_text), 0)
  end

  local function call(tool, arguments, ...)
    if arguments == nil then arguments = {} end
    if type(arguments) ~= "table" or select("#", ...) > 0 then
      local found = place()
      error((found and found .. ": " or "") .. tool .. ": the arguments must be one table, such as {name = 'value'}", 0)
    end
    return request(function(id) host.call(id, tool, arguments) end)
  end

  local tool
  tool = function(path)
    return setmetatable({}, {
      __index = function(_, name) return tool(path and path .. "." .. tostring(name) or tostring(name)) end,
      __newindex = function() error("tools cannot be changed", 2) end,
      __call = function(_, ...) return call(path or "", ...) end,
      __tostring = function() return "tools" .. (path and "." .. path or "") end,
    })
  end

  -- Runs functions at the same time while they wait for tools, and returns their results in order.
  local function parallel(functions)
    local values, waiting, failure = {}, {}, nil
    local function resume(position, thread)
      inside[thread] = true
      local is_ok, value = coroutine.resume(thread)
      if not is_ok then
        failure = failure or value
      elseif coroutine.status(thread) == "dead" then
        values[position] = value == nil and json.null or value
      else
        waiting[value] = { position, thread }
      end
    end
    for position, run in ipairs(functions) do resume(position, coroutine.create(run)) end
    while next(waiting) do
      local ready = {}
      for id in pairs(waiting) do
        if results[id] then ready[#ready + 1] = id end
      end
      if #ready == 0 then receive() end
      for _, id in ipairs(ready) do
        local position, thread = table.unpack(waiting[id])
        waiting[id] = nil
        resume(position, thread)
      end
    end
    if failure ~= nil then error(failure, 0) end
    return setmetatable(values, json.array)
  end

  cortexone_handler, fetch, process = nil, nil, nil
  tools = tool()
  call_tool = function(name, arguments) return call(tostring(name), arguments) end
  progress = function(done, total, message) host.progress(done, total, message) end
  sleep = function(millis) request(function(id) host.sleep(id, millis) end) end
  _G.parallel = parallel

  local run, fault = host.compile(event.code, event.name)
  if not run then error(fault, 0) end
  return { value = run() }
end
