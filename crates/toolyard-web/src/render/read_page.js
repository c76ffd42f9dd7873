// Returns the URL of the document, its media type, and its HTML with the contents of shadow roots in their places, as far
// as `limit` UTF-16 code units and `nodes` nodes. The copy belongs to a document without scripts, so that nothing of the
// page runs. A text, which the browser shows in a `pre` element, is returned as it is.
(limit, nodes) => {
  const shown = document.body?.querySelector(":scope > pre");
  if (!document.contentType.includes("html") && shown) {
    return [document.URL, "text/plain", shown.textContent.slice(0, limit)];
  }
  const inert = document.implementation.createHTMLDocument("");
  const left = (node) =>
    node.localName === "noscript" || node.localName === "style" ||
    (node.localName === "script" && node.type !== "application/ld+json");
  const children = (node) => {
    if (node.shadowRoot) return node.shadowRoot.childNodes;
    const assigned = node.localName === "slot" ? node.assignedNodes() : [];
    return assigned.length ? assigned : node.childNodes;
  };
  const root = inert.importNode(document.documentElement, false);
  const open = [[children(document.documentElement)[Symbol.iterator](), root]];
  let size = 0;
  while (open.length && nodes > 0 && size < limit) {
    const [rest, parent] = open[open.length - 1];
    const { value: child, done } = rest.next();
    if (done) {
      open.pop();
      continue;
    }
    nodes--;
    if ((child.nodeType !== Node.ELEMENT_NODE && child.nodeType !== Node.TEXT_NODE) || left(child)) continue;
    const copy = inert.importNode(child, false);
    parent.append(copy);
    if (child.nodeType === Node.TEXT_NODE) size += child.data.length;
    else open.push([children(child)[Symbol.iterator](), copy]);
  }
  return [document.URL, "text/html", root.outerHTML.slice(0, limit)];
}
