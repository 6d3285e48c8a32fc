// The form of the page "Try it": every change runs the program again.

import { run } from "./wasi.js";

const EXAMPLE = JSON.stringify({
  name: "echo",
  title: "Echo",
  descripton: "Repeats a text.",
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
  icons: [{ src: "https://example.com/echo.png" }],
}, null, 2);

const form = document.getElementById("try");
const fields = form.elements;
const answer = document.getElementById("answer");
const status = document.getElementById("status");

/** Fetches and compiles the program. */
async function load() {
  const response = await fetch(new URL("mcp-exact.wasm", import.meta.url));
  if (!response.ok) throw new Error(`status ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

const module = await load().catch(error => {
  status.textContent = `The program cannot be loaded: ${error.message}.`;
  throw error;
});
const program = (args, input = "") => run(module, ["mcp-exact", ...args], input);

/** Returns the arguments that the form asks for. */
function wanted() {
  const [from, to, type, direction] = ["from", "to", "type", "direction"].map(name => fields[name].value);
  const subject = type ? ["--type", type] : direction ? ["--direction", direction] : [];
  switch (fields.command.value) {
    case "check": return ["check", "--unknown", "--revision", from, ...subject, "-"];
    case "convert": return ["convert", "--revision", from, "--to", to, ...subject, "-"];
    default: return ["diff", from, to];
  }
}

function update() {
  const command = fields.command.value;
  for (const element of form.querySelectorAll("[data-for]")) {
    element.hidden = !element.dataset.for.split(" ").includes(command);
  }
  const args = wanted();
  const begun = performance.now();
  const { code, output, errors } = program(args, fields.document.value);
  const took = Math.ceil(performance.now() - begun);
  document.getElementById("command").textContent = ["mcp-exact", ...args].join(" ");
  answer.textContent = output + errors;
  answer.dataset.code = code;
  status.textContent = `exit code ${code}, ${took} ms`;
}

function listTypes() {
  const names = program(["show", "--revision", fields.from.value, "--json"]);
  document.getElementById("types").replaceChildren(...JSON.parse(names.output).types.map(name => new Option(name)));
}

const revisions = JSON.parse(program(["revisions", "--json"]).output).map(row => row.revision);
for (const field of [fields.from, fields.to]) {
  field.replaceChildren(...revisions.map(revision => new Option(revision)));
}
fields.from.value = revisions.at(-2);
fields.to.value = revisions[1];
fields.type.value = "Tool";
fields.document.value = EXAMPLE;
listTypes();
fields.from.addEventListener("change", listTypes);
form.addEventListener("input", update);
form.addEventListener("submit", event => event.preventDefault());
update();
form.dataset.ready = "true";
