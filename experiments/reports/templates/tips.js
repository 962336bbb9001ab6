// Tooltips
const tip = make("div", { id: "tip", hidden: true });
tip.setAttribute("role", "tooltip");
const told = make("div", { className: "told" });
told.setAttribute("aria-live", "polite");
document.querySelector(".page").append(tip, told);
const cellText = (image, row, column) => {
  const { names, values, what } = JSON.parse(image.dataset.cells);
  return `${names[row]}\n${names[column]}\n${what} ${values[row][column]}`;
};
const cellAt = (image, event) => {
  const number = JSON.parse(image.dataset.cells).names.length;
  const box = image.getBoundingClientRect();
  const place = (part) => Math.min(number - 1, Math.max(0, Math.floor(part * number)));
  return cellText(image, place((event.clientY - box.top) / box.height), place((event.clientX - box.left) / box.width));
};
let marked = [], shownFor = null;
const hide = () => {
  marked.forEach((element) => element.classList.remove("same", "reached"));
  all("figure svg .marks").forEach((layer) => layer.remove());
  [marked, shownFor] = [[], null];
  tip.hidden = true;
  document.querySelector("[aria-describedby=tip]")?.removeAttribute("aria-describedby");
};
const place = (left, below, above = below) => {
  const fits = below + tip.offsetHeight + 6 <= scrollY + innerHeight;
  const right = scrollX + root.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(scrollX + 4, Math.min(left, right))}px`;
  tip.style.top = `${fits ? below : Math.max(scrollY + 4, above - tip.offsetHeight)}px`;
};
// A client is marked wherever it is drawn: a ring around its marker, a frame around its tile, which leaves the digit on it
// and its neighbours free, an outline around its bar, its line thick and on top.
const MARGIN = 2.2;
const ringOf = (marker) => {
  const ring = document.createElementNS(marker.namespaceURI, "circle");
  const { x, y, width, height } = marker.getBBox();
  const values = { cx: x + width / 2, cy: y + height / 2, r: Math.max(width, height) / 2 + MARGIN };
  Object.entries(values).forEach(([name, value]) => ring.setAttribute(name, value));
  return ring;
};
const FRAME = 0.7;
const frameOf = (tile) => {
  const frame = document.createElementNS(tile.namespaceURI, "rect");
  const { x, y, width, height } = tile.getBBox();
  const values = { x: x - FRAME, y: y - FRAME, width: width + 2 * FRAME, height: height + 2 * FRAME };
  Object.entries(values).forEach(([name, value]) => frame.setAttribute(name, value));
  return frame;
};
const copyOf = (group, className) => {
  const copy = group.cloneNode(true);
  [copy, ...all("*", copy)].forEach((part) => ["id", "data-tip", "data-client"].forEach((name) => part.removeAttribute(name)));
  copy.setAttribute("class", className);
  return copy;
};
const marksOf = (element) => {
  if (element.closest('g[id*="-tiles-concept-"]')) return [frameOf(element)];
  const markers = element.localName === "g" ? all("use", element) : [element];
  if (markers.length) return markers.map(ringOf);
  const isLine = getComputedStyle(element.querySelector("path")).fill === "none";
  return ["edge", ...(isLine ? ["line"] : [])].map((className) => copyOf(element, className));
};
const markClient = (target) => {
  const client = target.dataset.client;
  if (client === undefined) return;
  marked = all(`figure svg [data-client="${CSS.escape(client)}"]`);
  marked.forEach((element) => element.classList.add("same"));
  const layers = new Map();
  for (const element of marked.filter((each) => each.getClientRects().length)) {
    const axes = element.closest('g[id*="-axes_"]') ?? element.ownerSVGElement;
    if (!layers.has(axes)) {
      layers.set(axes, document.createElementNS(axes.namespaceURI, "g"));
      layers.get(axes).setAttribute("class", "marks");
    }
    const marks = marksOf(element);
    if (element === target) marks.forEach((mark) => mark.classList.add("here"));
    layers.get(axes).append(...marks);
  }
  layers.forEach((layer, axes) => {
    layer.append(...all(".here", layer));
    axes.append(layer);
  });
};
// Thin lines and small circles are pointed at from some pixels away.
const AWAY = [2, -2, 4, -4];
const toldAt = ({ target, clientX, clientY }) => {
  const found = target.closest?.("[data-tip], [data-cells]");
  if (found || !target.closest?.("figure svg")) return found;
  return AWAY.map((away) => document.elementFromPoint(clientX, clientY + away)?.closest("figure svg [data-client]")).find(Boolean);
};
const show = (event) => {
  const target = toldAt(event);
  if (!target || target !== shownFor) hide();
  if (!target) return;
  tip.hidden = false;
  tip.textContent = target.dataset.tip ?? cellAt(target, event);
  if (target !== shownFor) markClient(target);
  shownFor = target;
  place(event.pageX + 14, event.pageY + 16, event.pageY - 10);
};
const showFocused = ({ target }) => {
  const described = target.closest("[data-tip]");
  if (!described || !target.matches(":focus-visible")) return;
  hide();
  tip.hidden = false;
  tip.textContent = described.dataset.tip;
  target.setAttribute("aria-describedby", "tip");
  const box = target.getBoundingClientRect();
  place(scrollX + box.left, scrollY + box.bottom + 6, scrollY + box.top - 6);
};
let pointer = "mouse";
document.addEventListener("pointermove", show);
document.addEventListener("pointerdown", (event) => { pointer = event.pointerType; show(event); });
// A tap on a heading sorts; its tip would cover the first rows.
document.addEventListener("click", (event) => { if (pointer === "touch" && event.target.closest("th button")) hide(); });
document.addEventListener("focusin", showFocused);
// A click moves the focus, too, after it has shown a tip.
document.addEventListener("focusout", () => { if (!shownFor) hide(); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

// Arrow keys go from mark to mark of a figure, and through the cells of heat maps.
const stopsOf = (group) => all("[data-tip], [data-cells]", group).filter((mark) => mark.getClientRects().length).flatMap((mark) => {
  if (!mark.dataset.cells) return [{ mark }];
  const number = JSON.parse(mark.dataset.cells).names.length;
  return Array.from({ length: number * number }, (_, cell) => ({ mark, cell, number }));
});
const boxOf = ({ mark, cell, number }) => {
  const box = mark.getBoundingClientRect();
  if (cell === undefined) return box;
  const [width, height] = [box.width / number, box.height / number];
  return new DOMRect(box.left + width * (cell % number), box.top + height * Math.floor(cell / number), width, height);
};
const reach = (group, stop) => {
  const { mark, cell, number } = stop;
  mark.scrollIntoView({ block: "nearest", inline: "nearest" });
  hide();
  tip.textContent = mark.dataset.tip ?? cellText(mark, Math.floor(cell / number), cell % number);
  told.textContent = tip.textContent;
  tip.hidden = false;
  markClient(mark);
  mark.classList.add("reached");
  marked.push(mark);
  const box = boxOf(stop);
  place(scrollX + box.right + 6, scrollY + Math.min(box.bottom, innerHeight - tip.offsetHeight - 6));
};
const moved = (key, index, stops) => {
  const across = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (across) return index < 0 ? (across > 0 ? 0 : stops.length - 1) : index + across;
  if (key === "Home") return 0;
  if (key === "End") return stops.length - 1;
  const { cell, number } = stops[index] ?? {};
  if (number === undefined || !/^Arrow(Up|Down)$/.test(key)) return null;
  const row = Math.floor(cell / number) + (key === "ArrowDown" ? 1 : -1);
  return row < 0 || row >= number ? index : index + (key === "ArrowDown" ? number : -number);
};
for (const group of all("figure [role=group]")) {
  let index = -1;
  const stops = () => stopsOf(group);
  group.addEventListener("keydown", (event) => {
    if (event.target !== group || event.altKey || event.ctrlKey || event.metaKey) return;
    const known = stops(), next = known.length ? moved(event.key, Math.min(index, known.length - 1), known) : null;
    if (next === null) return;
    event.preventDefault();
    index = Math.min(known.length - 1, Math.max(0, next));
    reach(group, known[index]);
  });
  group.addEventListener("focusout", () => { index = -1; });
  // Where there is no mark to reach, and nothing to scroll, a stop would be in the way.
  if (!group.querySelector("[data-tip], [data-cells]")) {
    new ResizeObserver(() => {
      if (group.scrollWidth > group.clientWidth) group.tabIndex = 0;
      else group.removeAttribute("tabindex");
    }).observe(group);
  }
}
