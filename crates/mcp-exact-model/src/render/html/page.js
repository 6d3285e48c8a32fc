"use strict";
const bodies = [...document.querySelectorAll("tbody")];
const more = body => body.querySelector(".more");

function open(body, on, step) {
  more(body).hidden = !on;
  body.classList.toggle("open", on);
  for (const button of body.querySelectorAll("button")) {
    const mine = button.dataset.step === undefined || button.dataset.step === step;
    button.setAttribute("aria-expanded", String(on && mine));
  }
  for (const section of body.querySelectorAll("section")) {
    section.classList.toggle("chosen", on && section.dataset.step === step);
  }
}

document.addEventListener("click", event => {
  const button = event.target.closest("tbody button");
  if (button) {
    const closing = button.getAttribute("aria-expanded") === "true";
    open(button.closest("tbody"), !closing, button.dataset.step);
  }
});

// The sheet is as wide as what one sees of the table, however far that is scrolled.
const measure = () => {
  for (const box of document.querySelectorAll(".scroll")) {
    box.style.setProperty("--sheet", box.clientWidth + "px");
  }
};
addEventListener("resize", measure);
measure();

const find = document.getElementById("find");
const constant = document.getElementById("constant");
function filter() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const body of bodies) {
    const name = body.querySelector(".name").textContent.toLowerCase();
    const fits = words.every(word => name.includes(word));
    body.hidden = !fits || (constant.checked && "constant" in body.dataset);
    shown += body.hidden ? 0 : 1;
  }
  const all = shown === bodies.length;
  document.getElementById("found").value = all ? "" : `${shown} of ${bodies.length}`;
}
find.addEventListener("input", filter);
constant.addEventListener("change", filter);
filter();

function follow() {
  const at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (at && at.tagName === "TBODY") {
    if (at.hidden) {
      find.value = "";
      constant.checked = false;
      filter();
    }
    open(at, true);
    at.scrollIntoView({ block: "start" });
    at.querySelector("button").focus({ preventScroll: true });
  }
}
addEventListener("hashchange", follow);
follow();
