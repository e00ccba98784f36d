// Help for the reader, on every page: local time beside UTC, whole addresses, buttons that copy, long pages folded. Without it the page says the same.
"use strict";

const COPIED_MS = 2000;

const two = (number) => String(number).padStart(2, "0");

// The local time of a moment, with its distance to UTC; the date only if it is another one there.
function local(at) {
  const minutes = -at.getTimezoneOffset();
  const distance = `UTC${minutes < 0 ? "−" : "+"}${Math.floor(Math.abs(minutes) / 60)}${minutes % 60 ? ":" + two(Math.abs(minutes) % 60) : ""}`;
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${at.toISOString().startsWith(date) ? "" : date + " "}${clock} ${distance}`;
}

function addLocalTimes() {
  for (const time of document.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    if (isNaN(at) || at.getTimezoneOffset() === 0) continue;
    const isWhole = time.textContent.trim().endsWith("UTC");
    time.dataset.local = local(at);
    time.title = `${time.title || time.textContent.trim()} = ${local(at)} here`;
    if (isWhole) {
      const beside = document.createElement("span");
      beside.className = "local";
      beside.textContent = ` (${local(at)})`;
      time.append(beside);
    }
  }
}

// The clipboard of browsers is there only over https and on this machine; elsewhere the old way still works.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (!isDone) throw new Error("refused");
}

// Puts a button behind an element; `work` copies and returns what to say of it.
function addButton(behind, text, name, work) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = text;
  button.setAttribute("aria-label", `Copy ${name}`);
  button.addEventListener("click", async () => {
    let outcome = "Not copied";
    try {
      outcome = (await work()) ?? "Copied";
    } catch {}
    button.textContent = outcome;
    button.focus();
    document.getElementById("said").textContent = `${outcome}: ${name}`;
    setTimeout(() => {
      button.textContent = text;
      document.getElementById("said").textContent = "";
    }, COPIED_MS);
  });
  behind.after(button);
}

function addCopyButtons() {
  for (const source of document.querySelectorAll("[data-copy]:not([data-has-button])")) {
    source.dataset.hasButton = "";
    addButton(source, "Copy", source.dataset.copy, () => copy(source.textContent.trim()));
  }
}

// Only the browser knows by which name, and whether over TLS, this place is reached from where it is.
function fillInAddresses() {
  for (const shown of document.querySelectorAll("[data-address]")) shown.textContent = new URL(shown.dataset.address, location.href).href;
}

function help() {
  fillInAddresses();
  addLocalTimes();
  addCopyButtons();
}

// On a narrow screen what can be folded is, except for what the address asks for.
function fold() {
  if (!matchMedia("(max-width: 56rem)").matches) return;
  const asked = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (const details of document.querySelectorAll("details.fold")) details.open = Boolean(asked && details.contains(asked));
}

fold();
help();
document.addEventListener("shown", help);
