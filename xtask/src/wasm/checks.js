// Appended to the page "Try it" by `cargo xtask wasm`: uses it as a person does, and posts what holds.
(async () => {
  const results = [];
  const check = (name, holds) => results.push(`${holds ? "ok" : "FAIL"} ${name}`);
  const form = document.getElementById("try");
  for (let waited = 0; form.dataset.ready !== "true" && waited < 60_000; waited += 50) {
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  const answer = document.getElementById("answer");
  const set = values => {
    for (const [name, value] of Object.entries(values)) {
      form.elements[name].value = value;
      form.elements[name].dispatchEvent(new Event("change", { bubbles: true }));
    }
    form.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const shows = text => answer.textContent.includes(text);

  check("the program has loaded", form.dataset.ready === "true");
  check(`nothing is wider than the screen (${document.documentElement.scrollWidth} of ${innerWidth})`, document.documentElement.scrollWidth <= innerWidth);
  check("the misspelt member of the example is reported", shows("descripton") && shows("description") && answer.dataset.code === "1");
  check("all revisions are offered", form.elements.from.options.length >= 5);
  check("types are offered", document.getElementById("types").options.length > 100);
  set({ document: '{"name": 1}' });
  check("violations have pointers", shows("/name") && shows("inputSchema"));
  set({ document: '{"name": "echo", "inputSchema": {"type": "object"}}' });
  check("a valid document is accepted", answer.dataset.code === "0");
  set({ document: "{" });
  check("text that is not JSON is refused", answer.dataset.code === "1");
  set({ type: "", direction: "client", document: '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}' });
  check("messages are checked", shows("/params") && shows("name"));
  set({ command: "convert", from: "2025-11-25", to: "2025-03-26", type: "Tool", document: '{"name": "echo", "title": "Echo", "inputSchema": {"type": "object"}, "icons": [{"src": "https://example.com/i.png"}]}' });
  check("documents are converted", shows('"annotations":{"title":"Echo"}'));
  check("losses are reported", shows("/icons"));
  set({ command: "diff", from: "2025-06-18", to: "2025-11-25" });
  check("revisions are compared", shows("Icon") && answer.dataset.code === "0");
  check("fields that a command does not need are hidden", form.elements.document.offsetParent === null);
  check("every field has a label", [...form.querySelectorAll("input, select, textarea")].every(field => field.labels.length > 0));

  const tool = { name: "echo", description: "Repeats a text. ".repeat(20), inputSchema: { type: "object", properties: { text: { type: "string" } } } };
  const document_ = JSON.stringify({ tools: Array.from({ length: 100_000 / JSON.stringify(tool).length }, () => tool) });
  const time = values => {
    set(values);
    const times = Array.from({ length: 21 }, () => {
      const begun = performance.now();
      set({});
      return performance.now() - begun;
    });
    return times.sort((a, b) => a - b)[10].toFixed(1);
  };
  const kilobytes = Math.round(document_.length / 1000);
  const checking = time({ command: "check", from: "2025-11-25", type: "ListToolsResult", document: document_ });
  check(`a document of ${kilobytes} kB is checked in ${checking} ms (median of 21)`, answer.dataset.code === "0");
  const converting = time({ command: "convert", to: "2025-03-26" });
  check(`a document of ${kilobytes} kB is converted in ${converting} ms (median of 21)`, shows('"tools"'));
  await fetch("/results", { method: "POST", body: results.join("\n") });
})();
