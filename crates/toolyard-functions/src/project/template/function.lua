-- A function that is given an event, and returns a status and a body.
-- `json` is there already; there are no files and no other modules, and each call begins anew.

-- Called once for each event. An error is answered with status 500.
function cortexone_handler(event, context)
  local input = type(event) == "string" and json.decode(event) or event
  if not input.name then
    return { statusCode = 400, body = { error = "who is to be greeted? Give a name." } }
  end
  return { statusCode = 200, body = { greeting = "Hello, " .. input.name .. "!" } }
end
