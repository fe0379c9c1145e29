"use strict";
// Before the page is painted: the theme that was chosen last.
const THEMES = ["auto", "light", "dark"], PLACE = "calibrant-theme";
const remembered = () => { try { return localStorage.getItem(PLACE); } catch { return null; } };
const remember = (theme) => { try { localStorage.setItem(PLACE, theme); } catch { /* nowhere to keep it */ } };
const show = (theme) => { document.documentElement.dataset.theme = theme; };
show(THEMES.includes(remembered()) ? remembered() : "auto");

function toggleThemes(button) {
  const name = () => { button.textContent = `Theme: ${document.documentElement.dataset.theme}`; };
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    show(next);
    remember(next);
    name();
  });
  name();
  button.hidden = false;
}

// Numbers by their value, what is not known last either way; all else as people order names.
function compare(x, y, sign) {
  if (x.isNumber && y.isNumber) {
    const [s, t] = [x, y].map((cell) => Number(cell.key.replace("inf", "Infinity")));
    if (Number.isNaN(s) || Number.isNaN(t)) return Number.isNaN(s) - Number.isNaN(t);
    return s === t ? 0 : sign * (s < t ? -1 : 1);
  }
  return sign * x.key.localeCompare(y.key, undefined, { numeric: true });
}

function makeSortable(table) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const order = next[head.getAttribute("aria-sort")], sign = order === "descending" ? -1 : 1;
      heads.forEach((other) => other.setAttribute("aria-sort", other === head ? order : "none"));
      const cell = (row) => ({ key: row.cells[column].dataset.key, isNumber: head.classList.contains("number") });
      const rows = order === "none" ? original : [...original].sort((a, b) => compare(cell(a), cell(b), sign));
      body.append(...rows);
    });
  });
}

// The link hands out the data that the page carries.
function makeDownload(link) {
  const data = document.getElementById("data").textContent;
  link.href = URL.createObjectURL(new Blob([data], { type: "application/json" }));
  link.hidden = false;
}

function openForPrint() {
  const closed = document.querySelectorAll("details:not([open])");
  closed.forEach((details) => { details.open = true; });
  addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }), { once: true });
}

addEventListener("DOMContentLoaded", () => {
  toggleThemes(document.getElementById("theme"));
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  makeDownload(document.getElementById("download"));
});
addEventListener("beforeprint", openForPrint);
