// The handler of every script in JavaScript: it gives the script its globals, runs it, and returns {value}.
function cortexone_handler(event, context, host) {
  "use strict";
  // Members that the language itself asks for: a promise must not be made of a name, for example.
  const ofLanguage = ["then", "toJSON", "toString", "valueOf", "constructor", "prototype"];
  const requests = new Map();
  let last = 0;

  class ToolError extends Error {
    get name() {
      return "ToolError";
    }
  }

  host.deliver = (id, isError, result) => {
    const { resolve, reject, error } = requests.get(id);
    requests.delete(id);
    if (!isError) return resolve(result);
    for (const [name, value] of Object.entries(result ?? {})) {
      Object.defineProperty(error, name, { value, enumerable: name !== "message", configurable: true });
    }
    reject(error);
  };

  function request(send) {
    // Created here, so that its stack names the line of the script.
    const error = new ToolError("the call failed");
    const id = ++last;
    const entry = { error };
    entry.promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
    send(id);
    requests.set(id, entry);
    return entry.promise;
  }

  function call(tool, args = {}) {
    if (typeof args !== "object" || args === null || Array.isArray(args)) {
      throw new TypeError(`${tool}: the arguments must be one object, such as {name: "value"}`);
    }
    const text = JSON.stringify(args);
    return request((id) => host.call(id, tool, text));
  }

  const tool = (path) =>
    new Proxy(() => {}, {
      get: (_, name) =>
        typeof name === "symbol" || ofLanguage.includes(name) ? undefined : tool([...path, name]),
      apply: (_, self, args) => {
        const name = path.join(".");
        if (args.length > 1) {
          throw new TypeError(`${name}: expected one object with the arguments, found ${args.length} values`);
        }
        return call(name, ...args);
      },
      set: () => false,
      deleteProperty: () => false,
    });

  // Waits for calls that the script has not waited for, so that none is cut off by the end of the script.
  async function finish() {
    while (requests.size > 0) {
      const ended = await Promise.allSettled([...requests.values()].map(({ promise }) => promise));
      for (const { reason } of ended.filter(({ status }) => status === "rejected")) {
        console.log(`a call that the script did not wait for failed: ${reason.message}`);
      }
    }
  }

  globalThis.cortexone_handler = undefined;
  delete globalThis.fetch;
  delete globalThis.process;
  Object.assign(globalThis, {
    tools: tool([]),
    call_tool: (name, args) => call(String(name), args),
    progress: (done, total, message) => host.progress(Number(done), total, message),
    sleep: (millis) => request((id) => host.sleep(id, Number(millis))),
    ToolError,
  });
  // In one line with the first line of the script, so that lines keep their numbers.
  const value = host.evaluate(`(async () => {${event.code}\n})()`, event.name);
  return (async () => {
    const returned = await value;
    await finish();
    return returned === undefined ? {} : { value: returned };
  })();
}
