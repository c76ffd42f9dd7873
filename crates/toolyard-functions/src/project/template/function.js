// A function that is given an event, and returns a status and a body.
// Everything is synchronous here: there is no `async`, no `import`, and each call begins anew.

// Called once for each event. What is thrown is answered with status 500.
function cortexone_handler(event, context) {
  var input = typeof event === "string" ? JSON.parse(event) : event;
  if (!input.name) {
    return { statusCode: 400, body: { error: "who is to be greeted? Give a name." } };
  }
  return { statusCode: 200, body: { greeting: "Hello, " + input.name + "!" } };
}
