"use strict";
const byId = id => document.getElementById(id);
const bodies = [...document.querySelectorAll("tbody")];

function open(body, on, step) {
  body.querySelector(".more").hidden = !on;
  body.classList.toggle("open", on);
  for (const button of body.querySelectorAll("button")) {
    const mine = button.dataset.step === undefined || button.dataset.step === step;
    button.setAttribute("aria-expanded", String(on && mine));
  }
  for (const section of body.querySelectorAll("section")) {
    section.classList.toggle("chosen", on && section.dataset.step === step);
  }
  // The address names the row that was opened last, so that it can be passed on.
  if (on) history.replaceState(null, "", "#" + encodeURIComponent(body.id));
  else if (decodeURIComponent(location.hash.slice(1)) === body.id) history.replaceState(null, "", location.pathname + location.search);
}

document.addEventListener("click", event => {
  const button = event.target.closest("tbody button");
  if (button) open(button.closest("tbody"), button.getAttribute("aria-expanded") !== "true", button.dataset.step);
});

document.addEventListener("keydown", event => {
  const field = event.target.closest("input, select, textarea");
  if (event.key === "/" && !field) {
    event.preventDefault();
    byId("find").focus();
    return;
  }
  const body = event.target.closest("tbody");
  if (!body) return;
  if (event.key === "Escape") {
    open(body, false);
    body.querySelector(".name").focus();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const shown = bodies.filter(other => !other.hidden);
    const next = shown[shown.indexOf(body) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next && event.target.matches("button")) {
      event.preventDefault();
      next.querySelector(".name").focus();
    }
  } else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && event.target.matches("button")) {
    const buttons = [...body.querySelectorAll("tr:first-child button")];
    const next = buttons[buttons.indexOf(event.target) + (event.key === "ArrowRight" ? 1 : -1)];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }
});

// The sheet is as wide as what one sees of the table, however far that is scrolled.
const measure = () => {
  for (const box of document.querySelectorAll(".scroll")) box.style.setProperty("--sheet", box.clientWidth + "px");
};
addEventListener("resize", measure);
measure();

const find = byId("find"), kind = byId("kind"), consequence = byId("consequence");
function filter() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const body of bodies) {
    const fits = words.every(word => body.dataset.text.includes(word))
      && (!kind.value || body.dataset.kind === kind.value)
      && (!consequence.value || body.dataset.consequence.split(" ").includes(consequence.value));
    body.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  byId("found").value = shown === bodies.length ? "" : `${shown} of ${bodies.length} rows`;
}
for (const [field, event] of [[find, "input"], [kind, "change"], [consequence, "change"]]) field.addEventListener(event, filter);
byId("tools").addEventListener("submit", event => event.preventDefault());
filter();

const role = byId("role"), from = byId("from"), to = byId("to");
function answer() {
  if (!role) return;
  // One goes from an older revision to a newer one.
  for (const option of to.options) option.disabled = option.value <= from.value;
  if (to.value <= from.value) to.value = [...to.options].find(option => !option.disabled).value;
  for (const pair of document.querySelectorAll(".pair")) {
    pair.hidden = pair.dataset.from !== from.value || pair.dataset.to !== to.value;
    for (const part of pair.querySelectorAll(".role")) part.hidden = part.dataset.role !== role.value;
  }
}
for (const field of [role, from, to]) if (field) field.addEventListener("change", answer);
answer();
// A small screen begins with the rows.
if (role && matchMedia("(max-width: 40rem)").matches) byId("advice").open = false;

function follow() {
  const at = byId(decodeURIComponent(location.hash.slice(1)));
  if (!at || at.tagName !== "TBODY") return;
  if (at.hidden) {
    find.value = kind.value = consequence.value = "";
    filter();
  }
  open(at, true);
  at.scrollIntoView({ block: "start" });
  at.querySelector("button").focus({ preventScroll: true });
}
addEventListener("hashchange", follow);
follow();
