// Keeps a page up to date: fetches it again and puts the new <main> in the place of the old one, unless somebody is reading a list in it:
// then a button says what is new.
// When the prober does not answer, the page says so instead of showing old news as if it were new.
"use strict";

const PERIOD_MS = 5000;
const PATIENCE_MS = 4000;

const READING_MS = 30000;
const LISTS = "main :is(table, .findings, .plot)";
const ROWS = "tbody tr, .finding";

let answeredAt = new Date();
let activeAt = answeredAt;
let held = null; // the newest page, while an older one is being read

function nameOf(row) {
  return row?.querySelector(":is(th, h3) a[href]")?.getAttribute("href");
}

function rowCalled(name) {
  return [...document.querySelectorAll(ROWS)].find((row) => nameOf(row) === name);
}

// What is being looked at: the row under the pointer, else, down the page, the one in the middle of the screen.
function rowInView() {
  const middle = scrollY > 0 ? document.elementFromPoint(innerWidth / 2, innerHeight / 2) : null;
  return document.querySelector(`${LISTS} :is(${ROWS}):hover`) ?? middle?.closest(ROWS);
}

function show(fresh) {
  const old = document.getElementById("main");
  const main = fresh.getElementById("main");
  for (const details of old.querySelectorAll("details[id]")) {
    const same = main.querySelector(`#${details.id}`);
    if (same) same.open = details.open;
  }
  const [name, top] = [nameOf(rowInView()), rowInView()?.getBoundingClientRect().top];
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolled = [...old.querySelectorAll(".drawing")].map((drawing) => drawing.scrollLeft);
  old.replaceWith(main);
  main.querySelectorAll(".drawing").forEach((drawing, index) => (drawing.scrollLeft = scrolled[index] ?? 0));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  const row = name && rowCalled(name);
  if (row) scrollBy({ top: row.getBoundingClientRect().top - top, behavior: "instant" });
  tell(fresh);
  held = null;
  document.getElementById("news").hidden = true;
  document.dispatchEvent(new Event("shown"));
}

// The tab and what is read aloud say how things stand, also while the page itself is left alone.
function tell(fresh) {
  document.title = fresh.title;
  document.querySelector("link[rel=icon]").replaceWith(fresh.querySelector("link[rel=icon]").cloneNode());
  const [said, says] = [document.getElementById("summary"), fresh.getElementById("summary")];
  if (said.textContent !== says.textContent) said.textContent = says.textContent; // announced only when it changes
}

function newRows(fresh) {
  const known = new Set([...document.querySelectorAll(ROWS)].map(nameOf));
  return [...fresh.querySelectorAll(ROWS)].map(nameOf).filter((name) => name && !known.has(name));
}

// Keeps a page back, and says what is new on it.
function hold(fresh) {
  const count = newRows(fresh).length;
  const isOther = held === null && document.getElementById("summary").textContent !== fresh.getElementById("summary").textContent;
  const news = document.getElementById("news");
  if (count || isOther) {
    const text = count ? `${count} new: show` : "Changed: show";
    if (news.hidden || news.textContent !== text) news.textContent = text;
    news.hidden = false;
  }
  held = fresh;
  tell(fresh);
}

function showHeld() {
  if (!held) return;
  const [first] = newRows(held);
  show(held);
  const row = first && rowCalled(first);
  row?.scrollIntoView({ block: "center" });
  (row?.querySelector("a[href]") ?? document.getElementById("main")).focus({ preventScroll: true });
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

// What somebody is selecting, filling in, or about to press is not pulled away, but what was left behind does not keep old news on the
// screen.
function isReading() {
  const isBusy =
    document.getSelection()?.isCollapsed === false ||
    document.activeElement?.closest(`form, ${LISTS}`) != null ||
    document.querySelector(`:is(${LISTS}):hover`) != null;
  return isBusy && new Date() - activeAt < READING_MS;
}

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch(location.pathname + location.search, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    answeredAt = new Date();
    if (isReading() && !document.body.classList.contains("stale")) hold(fresh);
    else show(fresh);
    setSilent(false);
  } catch {
    setSilent(true);
  }
}

for (const sign of ["pointermove", "pointerdown", "keydown", "wheel"]) {
  document.addEventListener(sign, () => (activeAt = new Date()), { passive: true });
}
document.getElementById("news").addEventListener("click", showHeld);
setInterval(refresh, PERIOD_MS);
document.addEventListener("visibilitychange", refresh);
