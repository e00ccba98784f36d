// Lets the live page grow: the server sends rows as events happen. Without it the page is a snapshot that reloads.
"use strict";

const place = document.getElementById("live-steps");
const pause = document.getElementById("live-pause");
let source = null;

function isAtEnd() {
  return place.scrollTop + place.clientHeight >= place.scrollHeight - 40;
}

function grow(rows) {
  const follows = isAtEnd();
  const body = place.querySelector("tbody");
  body.insertAdjacentHTML("beforeend", rows);
  while (body.rows.length > place.dataset.kept) body.rows[0].remove();
  for (const link of body.querySelectorAll('a[href^="#event-"]')) {
    if (!document.getElementById(link.hash.slice(1))) link.replaceWith(`${link.textContent} (no longer shown)`);
  }
  const missed = document.getElementById("live-missed"); // there is none on a single key
  if (missed) missed.textContent = (place.dataset.after - body.querySelectorAll("tr[id]").length).toLocaleString("en-US");
  if (follows) place.scrollTop = place.scrollHeight;
}

function show({ rows, parts, is_over: isOver }) {
  for (const [name, text] of Object.entries(parts)) document.getElementById(`live-${name}`).innerHTML = text;
  if (rows) grow(rows);
  if (isOver) {
    stop();
    pause.hidden = true;
    document.getElementById("said").textContent = "The run ended.";
  }
}

function start() {
  source = new EventSource(`${place.dataset.events}&after=${place.dataset.after}`);
  source.addEventListener("message", (event) => {
    place.dataset.after = event.lastEventId;
    show(JSON.parse(event.data));
  });
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return; // else it tries again by itself
    document.getElementById("live-state").textContent = "not followed: too many viewers, or the run is gone";
    stop();
    pause.hidden = true;
  });
}

function stop() {
  source?.close();
  source = null;
}

if (place && !("over" in place.dataset)) {
  pause.hidden = false;
  pause.addEventListener("click", () => {
    const isPaused = source !== null;
    if (isPaused) stop();
    else start();
    pause.setAttribute("aria-pressed", String(isPaused));
    pause.textContent = isPaused ? "Go on" : "Pause";
  });
  addEventListener("pagehide", stop);
  start();
}
if (place) place.scrollTop = place.scrollHeight;
