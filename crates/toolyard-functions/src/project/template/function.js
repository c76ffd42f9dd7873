// A function that receives an event and returns a status and a body.
// Everything is synchronous: there is no `async` and no `import`, and each call has a new state.

// Called once per event. An exception becomes a reply with status 500.
function cortexone_handler(event, context) {
  var input = typeof event === "string" ? JSON.parse(event) : event;
  if (!input.name) {
    return { statusCode: 400, body: { error: "missing `name`" } };
  }
  return { statusCode: 200, body: { greeting: "Hello, " + input.name + "!" } };
}
