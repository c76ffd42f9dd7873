-- A function that receives an event and returns a status and a body.
-- `json` already exists; there are no files and no other modules, and each call begins anew.

-- Called once per event. An error becomes a reply with status 500.
function cortexone_handler(event, context)
  local input = type(event) == "string" and json.decode(event) or event
  if not input.name then
    return { statusCode = 400, body = { error = "missing `name`" } }
  end
  return { statusCode = 200, body = { greeting = "Hello, " .. input.name .. "!" } }
end
