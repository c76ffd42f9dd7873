setTimeout(async () => {
  const { pumps } = await (await fetch("/pumps.json", { headers: { "X-Part": "list" } })).json();
  const rows = pumps.map(({ name, bar }) => `<tr><td>${name}</td><td>${bar} bar</td></tr>`);
  document.querySelector("#app").innerHTML =
    `<h1>Pumps</h1><p>All pumps of <a href="/maker">the maker</a>.</p><table><tr><th>Pump</th><th>Pressure</th></tr>` +
    `${rows.join("")}</table><pump-note></pump-note>`;
  customElements.define("pump-note", class extends HTMLElement {
    connectedCallback() {
      this.attachShadow({ mode: "open" }).innerHTML = "<p>Prices without tax.</p><slot></slot>";
    }
  });
}, 2000);
