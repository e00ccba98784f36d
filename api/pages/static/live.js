// Lets the live page grow: the server sends rows as events happen. Without it the page is a snapshot that reloads.
"use strict";

const place = document.getElementById("live-steps");
const pause = document.getElementById("live-pause");
let source = null;
let total = null; // events that are not shown
let before = 0;

function isAtEnd() {
  return place.scrollTop + place.clientHeight >= place.scrollHeight - 40;
}

function show({ head, rows, missed, is_over: isOver }) {
  const follows = isAtEnd();
  place.querySelector("thead").innerHTML = head;
  const body = place.querySelector("tbody");
  body.insertAdjacentHTML("beforeend", rows);
  while (body.rows.length > place.dataset.kept) body.rows[0].remove();
  total = before + missed;
  document.getElementById("live-missed").textContent = `${total} events not shown.`;
  if (follows) place.scrollTop = place.scrollHeight;
  if (isOver) {
    stop();
    pause.hidden = true;
    const next = document.createElement("a");
    next.href = "live";
    next.textContent = "ended; show the newest run";
    document.getElementById("live-state").replaceChildren(next);
    document.getElementById("said").textContent = "The run ended.";
  }
}

function start() {
  before = total ?? Number(place.dataset.missed);
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
