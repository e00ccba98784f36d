// Keeps a page up to date: fetches it again and puts the new <main> in the place of the old one.
// When the prober does not answer, the page says so instead of showing old news as if it were new.
"use strict";

const PERIOD_MS = 5000;
const PATIENCE_MS = 4000;

const READING_MS = 30000;

let answeredAt = new Date();
let shownAt = answeredAt;

function show(fresh) {
  const old = document.getElementById("main");
  const main = fresh.getElementById("main");
  for (const details of old.querySelectorAll("details[open][id]")) {
    main.querySelector(`#${details.id}`)?.setAttribute("open", "");
  }
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.replaceWith(main);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });

  document.title = fresh.title;
  document.querySelector("link[rel=icon]").replaceWith(fresh.querySelector("link[rel=icon]"));
  const [said, says] = [document.getElementById("summary"), fresh.getElementById("summary")];
  if (said.textContent !== says.textContent) said.textContent = says.textContent; // announced only when it changes
  shownAt = new Date();
}

function setSilent(isSilent) {
  if (document.body.classList.contains("stale") === isSilent) return;
  document.getElementById("silent-since").textContent = answeredAt.toISOString().slice(0, 19).replace("T", " ") + " UTC";
  document.getElementById("silence").hidden = !isSilent;
  document.body.classList.toggle("stale", isSilent);
  if (isSilent) {
    document.title = "No answer · ordering-keys-prober";
    document.querySelector("link[rel=icon]").href = document.querySelector("link[rel=icon]").href.replace(/[a-z]+\.svg$/, "unknown.svg");
  }
}

// What somebody is selecting or filling in is not pulled away, but what was left behind does not keep old news on the screen.
function isReading() {
  const isBusy = document.getSelection()?.isCollapsed === false || document.activeElement?.closest("form") != null;
  return isBusy && new Date() - shownAt < READING_MS;
}

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch(location.pathname + location.search, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    answeredAt = new Date();
    if (!isReading() || document.body.classList.contains("stale")) show(fresh);
    setSilent(false);
  } catch {
    setSilent(true);
  }
}

setInterval(refresh, PERIOD_MS);
document.addEventListener("visibilitychange", refresh);
