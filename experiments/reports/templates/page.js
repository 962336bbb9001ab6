const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, values = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), values);
  element.append(...children);
  return element;
};

// Titles of figures would cover the tooltips.
for (const svg of all("figure svg")) {
  const title = svg.querySelector("title");
  if (!title) continue;
  svg.setAttribute("aria-label", title.textContent.trim());
  svg.removeAttribute("aria-labelledby");
  title.remove();
}

// Theme
const root = document.documentElement;
// Pages without storage, as in some mail programs, begin in the colours of the system.
const stored = (write) => { try { return write(localStorage); } catch { return null; } };
const chosen = stored((s) => s.getItem("bcfl-theme"));
if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const theme = make("button", { type: "button", id: "theme" });
const nameTheme = () => { theme.textContent = isDark() ? "Light colours" : "Dark colours"; };
theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; stored((s) => s.setItem("bcfl-theme", root.dataset.theme)); nameTheme(); });
nameTheme();
document.querySelector("nav").prepend(theme);

// The contents mark the section at the top of the window.
const sections = all("main section[aria-labelledby]");
const visible = new Set();
const watch = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) visible[isIntersecting ? "add" : "delete"](target);
  const current = sections.find((section) => visible.has(section))?.getAttribute("aria-labelledby");
  for (const link of all("nav a")) {
    if (current && link.hash === `#${current}`) link.setAttribute("aria-current", "location");
    else link.removeAttribute("aria-current");
  }
}, { rootMargin: "-8px 0px -70% 0px" });
sections.forEach((section) => watch.observe(section));

// Paper has room for the meaning of columns and for notes.
const closed = all("details.terms, details.notes");
addEventListener("beforeprint", () => closed.forEach((details) => { details.open = true; }));
addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));

// Tables
const valueOf = (row, column) => {
  const text = row.cells[column].firstChild ? row.cells[column].textContent.replace(/±.*/, "").replace("▲", "").replaceAll(",", "").replace("−", "-").trim() : "";
  const number = Number.parseFloat(text);
  return Number.isNaN(number) || /[a-z]/i.test(text[0] ?? "") ? text : number;
};
const isMissing = (value) => value === "" || value === "–";
const compare = (a, b, sign) => {
  if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
  return sign * ordered(a, b);
};
const ordered = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b);
};
for (const table of all("table.sortable")) {
  const heads = all("thead tr:last-child th", table);
  const original = [...table.tBodies[0].rows];
  heads.forEach((head, column) => {
    const button = make("button", { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const orders = ["ascending", "descending"];
      if (head.dataset.better === "1") orders.reverse();
      const order = orders[orders.indexOf(head.ariaSort) + 1];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (order) head.setAttribute("aria-sort", order);
      const sign = { ascending: 1, descending: -1 }[order];
      const rows = sign ? [...original].sort((a, b) => compare(valueOf(a, column), valueOf(b, column), sign)) : original;
      table.tBodies[0].append(...rows);
    });
  });
}

// Panels stand below one another where the window is narrow, and legends break between their entries.
const gap = 14;
const narrow = matchMedia("screen and (max-width: 760px)");
const layouts = all("figure svg").filter((svg) => !svg.closest(".wide, .narrow")).map((svg) => ({ svg, box: svg.getAttribute("viewBox"), width: svg.getAttribute("width"), height: svg.getAttribute("height") }));
const wrap = (legend, room) => {
  let x = 0, y = 0, entry = [];
  for (const part of legend.children) {
    entry.push(part);
    if (!/-text_\d+$/.test(part.id)) continue;
    const boxes = entry.map((g) => g.getBBox());
    const left = Math.min(...boxes.map((b) => b.x)), width = Math.max(...boxes.map((b) => b.x + b.width)) - left;
    if (x && x + width > room) [x, y] = [0, y + gap];
    entry.forEach((g) => g.setAttribute("transform", `translate(${x - left} ${y - boxes.at(-1).y})`));
    [x, entry] = [x + width + gap, []];
  }
};
const stack = ({ svg, box, width, height }) => {
  const parts = all(":scope > g > g", svg).filter((g) => /-(axes|legend)_\d+$/.test(g.id));
  const legends = parts.filter((g) => /-legend_/.test(g.id));
  [...parts, ...legends.flatMap((g) => [...g.children])].forEach((g) => g.removeAttribute("transform"));
  svg.setAttribute("viewBox", box);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  if (!narrow.matches || parts.length < 2) return;
  legends.forEach((g) => wrap(g, svg.parentNode.clientWidth * 0.75 - gap));
  const boxes = parts.map((g) => g.getBBox());
  let top = gap, widest = 0;
  parts.forEach((g, i) => {
    g.setAttribute("transform", `translate(${gap / 2 - boxes[i].x} ${top - boxes[i].y})`);
    top += boxes[i].height + gap;
    widest = Math.max(widest, boxes[i].width + gap);
  });
  svg.setAttribute("viewBox", `0 0 ${widest} ${top}`);
  svg.setAttribute("width", `${widest}pt`);
  svg.setAttribute("height", `${top}pt`);
};
const arrange = () => layouts.forEach(stack);
narrow.addEventListener("change", arrange);
arrange();
