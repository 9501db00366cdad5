// Replaces the content of the page whenever it changes, and closes the connection while the page is hidden.
"use strict";
const live = document.getElementById("live");
const connection = document.getElementById("connection");
let source, timer, latest, again, shown = 0;

function show() {
  timer = undefined;
  const selection = document.getSelection();
  if (live.matches(":active") || !selection.isCollapsed && live.contains(selection.anchorNode)) { // do not disturb who clicks or copies
    timer = setTimeout(show, 1000);
    return;
  }
  const focus = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const equal = () => [...live.querySelectorAll('[href="' + CSS.escape(focus) + '"]')]; // each job of a queue links to it
  const index = equal().indexOf(document.activeElement);
  const scrolled = [...live.querySelectorAll(".wide")].map((e) => e.scrollLeft);
  live.innerHTML = latest;
  shown = performance.now();
  if ("failed" in live.dataset && !live.querySelector("p.failed")) location.reload(); // the headline says that it has failed
  live.querySelectorAll(".wide").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
  if (focus !== null) {
    equal().slice(0, index + 1).at(-1)?.focus({ preventScroll: true });
  }
}

function connect() {
  if (source || document.hidden || live.dataset.page === undefined) return;
  source = new EventSource("/live?page=" + encodeURIComponent(live.dataset.page));
  source.onopen = () => { connection.textContent = "Live"; };
  source.onerror = () => {
    connection.textContent = "Disconnected. Check that the server of this page is still running.";
    if (source?.readyState === EventSource.CLOSED) { // after an HTTP error, the browser does not try again
      source = undefined;
      clearTimeout(again);
      again = setTimeout(connect, 5000);
    }
  };
  source.onmessage = (event) => {
    latest = event.data;
    timer ??= setTimeout(show, shown + 1000 - performance.now()); // at most one change a second
  };
}

function disconnect() {
  source?.close();
  source = undefined;
  connection.textContent = "";
}

document.addEventListener("visibilitychange", () => document.hidden ? disconnect() : connect());
setTimeout(connect, live.dataset.rest); // the stream reads the page again

const copy = document.getElementById("copy");
if (copy && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("command").textContent);
    copy.textContent = "Copied";
  });
}
