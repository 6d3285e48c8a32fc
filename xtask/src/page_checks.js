// Appended to the page of revisions by `cargo xtask page`: uses it as a person does, and writes down what holds.
"use strict";
(() => {
  const results = [];
  const check = (name, holds) => results.push(`${holds ? "ok" : "FAIL"} ${name}`);
  const shown = () => [...document.querySelectorAll("tbody")].filter(body => !body.hidden).map(body => body.id);
  const set = (id, value, event) => {
    const field = document.getElementById(id);
    field.value = value;
    field.dispatchEvent(new Event(event, { bubbles: true }));
  };
  const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const first = document.querySelector("tbody");
  const narrow = innerWidth < 640;

  check(`nothing is wider than the screen (${document.documentElement.scrollWidth} of ${innerWidth})`, document.documentElement.scrollWidth <= innerWidth);
  const bottom = Math.round(first.getBoundingClientRect().bottom);
  if (narrow) check(`the first row is on the first screen (${bottom} of ${innerHeight})`, bottom <= innerHeight);
  check("advice is there", document.querySelectorAll(".pair").length > 0);
  check("one pair and one role are shown", document.querySelectorAll(".pair:not([hidden])").length === 1 && document.querySelectorAll(".pair:not([hidden]) .role:not([hidden])").length === 1);

  set("role", "client", "change");
  set("from", "2025-06-18", "change");
  set("to", "2025-11-25", "change");
  const answer = document.querySelector(".pair:not([hidden]) .role:not([hidden])");
  check("the answer follows the questions", answer.closest(".pair").dataset.to === "2025-11-25" && answer.dataset.role === "client");
  check("a client of 2025-06-18 is told about elicitation", /Elicit/.test(answer.textContent));
  check("a client is told that answers may be lists", /You can send more[\s\S]*ElicitResult[\s\S]*string\[\]/.test(answer.textContent));
  set("to", "2025-06-18", "change");
  check("one goes forwards only", document.getElementById("to").value > "2025-06-18");

  const advised = (role, from, to) => {
    set("role", role, "change");
    set("from", from, "change");
    set("to", to, "change");
    return document.querySelector(".pair:not([hidden]) .role:not([hidden])").textContent;
  };
  check("a server is told that it may send audio", /You can send more[\s\S]*CallToolResult[\s\S]*AudioContent/.test(advised("server", "2024-11-05", "2025-03-26")));
  check("a server is told that batches have ended", /Change what you send[\s\S]*JSONRPCBatchRequest/.test(advised("server", "2025-03-26", "2025-06-18")));
  check("no role is told about unions of all messages", !/ClientNotification/.test(advised("server", "2025-11-25", "2026-07-28")));

  set("find", "audience", "input");
  check("members are found", shown().includes("type-Annotations"));
  set("find", "emergency", "input");
  check("values are found", shown().includes("type-LoggingLevel"));
  set("find", "destructive updates", "input");
  check("documentation is found", shown().includes("type-ToolAnnotations"));
  check("the number of rows is told", /of/.test(document.getElementById("found").value));
  set("find", "", "input");
  set("kind", "enum", "change");
  check("kinds are told apart", shown().includes("type-LoggingLevel") && !shown().includes("type-Tool"));
  set("kind", "", "change");
  set("consequence", "none", "change");
  check("consequences are told apart", shown().length > 0 && shown().every(id => !document.getElementById(id).querySelector("section[data-step] li")));
  set("consequence", "", "change");

  const tool = document.getElementById("type-Tool");
  tool.querySelector(".name").click();
  check("an open row has its address", decodeURIComponent(location.hash) === "#type-Tool" && !tool.querySelector(".more").hidden);
  check("an open row says so", tool.querySelector(".name").getAttribute("aria-expanded") === "true");
  press(tool.querySelector(".name"), "Escape");
  check("Escape closes it", tool.querySelector(".more").hidden && location.hash === "");
  press(document.body, "/");
  check("a slash begins a search", document.activeElement.id === "find");
  first.querySelector(".name").focus();
  press(first.querySelector(".name"), "ArrowDown");
  check("arrows go from row to row", document.activeElement.closest("tbody") === document.querySelectorAll("tbody")[1]);
  const buttons = [...document.querySelectorAll("button")];
  check("every button has a name", buttons.every(button => (button.getAttribute("aria-label") || button.textContent).trim()));
  const labelled = [...document.querySelectorAll("input, select")];
  check("every field has a label", labelled.every(field => field.labels.length > 0));

  parent.postMessage(results.join("\n"), "*");
})();
