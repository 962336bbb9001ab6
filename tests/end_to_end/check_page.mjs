// Opens a page in headless Chromium, uses it, and prints what was seen as JSON.
// node check_page.mjs NODE_MODULES CHROMIUM PAGE [SCREENSHOTS]
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [modules, executablePath, page, screenshots] = process.argv.slice(2);
const { default: puppeteer } = await import(
  pathToFileURL(`${modules}/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js`));
const axe = fs.readFileSync(`${modules}/axe-core/axe.min.js`, "utf8");
const timeout = 240_000;
const browser = await puppeteer.launch({
  executablePath, args: ["--no-sandbox"], protocolTimeout: timeout, timeout });
const tab = await browser.newPage();
tab.setDefaultTimeout(timeout);
const messages = [], requests = [];
tab.on("console", (message) => messages.push(message.text()));
tab.on("pageerror", (error) => messages.push(String(error)));
tab.on("request", (request) => { if (!/^(file|data):/.test(request.url())) requests.push(request.url()); });
await tab.setBypassCSP(true); // for axe alone; the page itself has run by then
await tab.setViewport({ width: 1280, height: 900 });
await tab.goto(pathToFileURL(page), { waitUntil: "load" });
await tab.evaluate(axe);

// What the pointer is told in the middle of each thing of a figure that has a text, by the script of the page itself.
const silent = () => tab.evaluate(() => {
  const tip = document.getElementById("tip"), missed = [];
  const isTold = (x, y) => {
    document.elementFromPoint(x, y)?.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
    return !tip.hidden;
  };
  const seenOf = (shape) => {
    const box = shape.getBoundingClientRect(), owner = shape.closest("[clip-path]");
    if (!owner) return box;
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(
      document.getElementById(owner.getAttribute("clip-path").slice("url(#".length, -1)).firstElementChild.getAttribute(name)));
    const [start, end] = [[x, y], [x + width, y + height]].map((corner) => new DOMPoint(...corner).matrixTransform(owner.getScreenCTM()));
    const [left, top] = [Math.max(box.left, start.x), Math.max(box.top, start.y)];
    return new DOMRect(left, top, Math.min(box.right, end.x) - left, Math.min(box.bottom, end.y) - top);
  };
  const middleOf = (shape) => {
    if (shape.localName === "path" && getComputedStyle(shape).fill === "none") {
      const { x, y } = shape.getPointAtLength(shape.getTotalLength() / 2).matrixTransform(shape.getScreenCTM());
      return [x, y];
    }
    const { x, y, width, height } = seenOf(shape);
    return [x + width / 2, y + height / 2];
  };
  // A line may be without height or width; an area that is has no inside to point at.
  const isDrawn = (shape) => {
    if (!shape.getClientRects().length) return false;
    const { width, height } = seenOf(shape);
    return Math[getComputedStyle(shape).fill === "none" ? "max" : "min"](width, height) >= 1;
  };
  for (const mark of document.querySelectorAll("figure svg [data-tip]")) {
    const shapes = mark.localName === "g" ? [...mark.querySelectorAll("use, path")].filter((shape) => !shape.closest("defs")) : [mark];
    for (const shape of shapes.filter(isDrawn)) {
      shape.scrollIntoView({ block: "center", inline: "center" });
      if (!isTold(...middleOf(shape))) missed.push(mark.dataset.tip);
    }
  }
  for (const image of [...document.querySelectorAll("figure svg [data-cells]")].filter(isDrawn)) {
    image.scrollIntoView({ block: "center", inline: "center" });
    const { x, y, width, height } = image.getBoundingClientRect(), { names } = JSON.parse(image.dataset.cells);
    names.forEach((name, index) => {
      const part = (index + 0.5) / names.length;
      if (!isTold(x + width * part, y + height * part)) missed.push(name);
    });
  }
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  scrollTo(0, 0);
  return missed;
});

const layouts = [];
for (const width of [1280, 390]) {
  for (const scheme of ["light", "dark"]) {
    await tab.setViewport({ width, height: 900 });
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    if (screenshots) await tab.screenshot({ path: `${screenshots}/${width}-${scheme}.png`, fullPage: true });
    layouts.push({ width, scheme, ...await tab.evaluate(async () => {
      const texts = [...document.querySelectorAll("figure svg text")].filter((text) => text.getClientRects().length);
      const sizes = texts.map((text) => {
        const svg = text.ownerSVGElement;
        const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
        return [parseFloat(getComputedStyle(text).fontSize) * scale, text.textContent, svg.ariaLabel];
      });
      const found = await globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] });
      return {
        smallest: sizes.sort((a, b) => a[0] - b[0])[0] ?? null,
        cut: texts.filter((text) => {
          const [inner, outer] = [text, text.ownerSVGElement].map((element) => element.getBoundingClientRect());
          return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
        }).map((text) => [text.textContent, text.closest('[id$="-figure_1"]')?.id]),
        overflow: document.documentElement.scrollWidth - innerWidth,
        black: [...document.querySelectorAll("figure svg :is(use, path, text)")].filter((shape) => {
          const { fill, stroke } = getComputedStyle(shape);
          return shape.getClientRects().length && !shape.closest("defs, clipPath, [data-round], [data-band]") && [fill, stroke].includes("rgb(0, 0, 0)");
        }).map((shape) => shape.outerHTML.slice(0, 200)),
        tables: [...document.querySelectorAll(".scroll:has(.results)")].map((box) => ({ label: box.ariaLabel, wide: box.scrollWidth, room: box.clientWidth })),
        background: getComputedStyle(document.body).backgroundColor,
        violations: found.violations.map((v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200)]),
      };
    }), silent: scheme === "light" ? await silent() : [] });
  }
}

await tab.setViewport({ width: 1280, height: 900 });
await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
const used = await tab.evaluate(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const input = (element, value, type) => {
    element.value = value;
    element.dispatchEvent(new Event(type, { bubbles: true }));
  };
  const result = { current: all("nav a[aria-current]").map((a) => a.hash), first: all("nav a")[0].hash, contents: all("nav a").length, headings: all("h2").length };
  const head = all("table.sortable thead th").find((th) => th.dataset.better === "1");
  if (head) {
    const column = () => [...head.closest("table").tBodies[0].rows].map((row) => row.cells[head.cellIndex].textContent.trim());
    const click = () => { head.querySelector("button").click(); return column(); };
    Object.assign(result, { unsorted: column(), descending: click(), ascending: click(), sort: head.ariaSort, third: click(), thirdSort: head.ariaSort });
    const cell = head.closest("table").tBodies[0].rows[0].cells[head.cellIndex], content = cell.innerHTML;
    cell.textContent = "–";
    result.missing = [click(), click(), click()].map((texts) => texts.indexOf("–"));
    cell.innerHTML = content;
  }
  const slider = document.getElementById("round"), picker = document.getElementById("hypothesis");
  if (slider) {
    const edges = () => all("#graph-figure_1 path, .drawn path").filter((p) => p.getClientRects().length).length;
    const lookOf = (use) => {
      const shape = document.getElementById((use.getAttribute("href") ?? use.getAttribute("xlink:href")).slice(1));
      return { corners: shape.getAttribute("d").match(/[LC]/g).join(""), fill: getComputedStyle(use).fill };
    };
    result.rounds = [];
    for (const value of [slider.max, "0", String(Math.floor(slider.max / 2))]) {
      input(slider, value, "input");
      const legend = all('g[id^="graph-concept-"]').map((entry) => [entry.id, lookOf(entry.querySelector("use"))]);
      const clients = all('[id^="graph-clients-"] use').map((use) => ({ client: use.dataset.client, tip: use.dataset.tip, ...lookOf(use) }));
      result.rounds.push({ legend: Object.fromEntries(legend), clients, text: document.querySelector("output").textContent, caption: document.querySelector("figure:has([id^=graph-]) figcaption").textContent, now: all(".now").length, picked: picker.value,
        layers: all(".drawn").length, options: picker?.options.length ?? 0 });
    }
    if (picker) {
      const options = [...picker.options].filter((option) => option.value.includes("/"));
      input(picker, options.at(-1)?.value ?? "kept", "change");
      result.picked = { value: picker.value, caption: document.querySelector("figure:has([id^=graph-]) figcaption").textContent, others: all(".other").length, layers: all(".drawn").length };
      input(picker, "kept", "change");
    }
    input(slider, slider.max, "input");
    const tips = () => all('[id^="graph-clients-"] use').map((use) => use.dataset.tip);
    result.kept = { picked: picker.value, layers: all(".drawn").length, tips: tips() };
    input(slider, "0", "input");
    input(picker, "believed", "change"); // beliefs are those of the last round
    result.restored = { round: slider.value === slider.max, layers: all(".drawn").length, others: all(".other").length, now: all(".now").length };
    result.believedTips = tips();
  }
  return result;
});
for (const [name, selector] of [["client", '[id^="graph-"] [data-client]'], ["tile", '[id^="partition-tiles-concept-"] [data-client]'], ["line", '[id^="moves-"][data-client]'], ["round", "[data-round] path"], ["cell", "[data-cells]"]]) {
  const target = await tab.$(selector);
  if (!target) continue;
  await target.evaluate((element) => element.scrollIntoView({ block: "end" }));
  // The middle of the box of a line need not be on it.
  const [x, y] = await target.evaluate((element) => {
    const box = element.getBoundingClientRect();
    if (element.localName !== "g") return [box.x + box.width / 2, box.y + box.height / 2];
    const line = element.querySelector("path");
    const place = line.getPointAtLength(line.getTotalLength() / 2).matrixTransform(line.getScreenCTM());
    return [place.x, place.y];
  });
  await tab.mouse.move(x, y);
  used[name] = await tab.evaluate(() => {
    const tip = document.getElementById("tip");
    const marks = [...document.querySelectorAll(".marks :is(circle, rect, path)")].map((mark) => {
      const { stroke, strokeWidth } = getComputedStyle(mark);
      const kind = { circle: "ring", rect: "frame" }[mark.localName] ?? mark.parentNode.classList[0];
      return { figure: mark.closest('[id$="-figure_1"]').id.split("-")[0], kind, width: parseFloat(strokeWidth), stroke };
    });
    // What a mark around a tile leaves free: its inside, and all beyond its outer edge.
    const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const grown = (mark, by) => {
      const { x, y, width, height } = mark.getBBox();
      return { left: x - by, right: x + width + by, top: y - by, bottom: y + height + by };
    };
    const digits = [...document.querySelectorAll('[id*="-digits-concept-"] use')].filter((use) => use.getClientRects().length);
    const covered = [...document.querySelectorAll('[id^="partition-"] .marks :is(circle, rect)')].flatMap((mark) => {
      const half = parseFloat(getComputedStyle(mark).strokeWidth) / 2;
      const [inner, outer] = [grown(mark, -half), grown(mark, half)];
      return digits.map((digit) => grown(digit, 0)).filter((box) => meets(box, outer)
        && (mark.localName === "circle" || box.left < inner.left || box.right > inner.right || box.top < inner.top || box.bottom > inner.bottom));
    }).length;
    const { bottom } = tip.getBoundingClientRect();
    return { hidden: tip.hidden, seen: bottom <= innerHeight, text: tip.textContent, marks, covered, digits: digits.length, ink: getComputedStyle(document.body).color,
      same: document.querySelectorAll('[id^="graph-"] .same').length };
  });
  if (screenshots) await tab.screenshot({ path: `${screenshots}/hover-${name}.png` });
}
const sorter = await tab.$("th[data-tip] button");
if (sorter) {
  await tab.keyboard.press("Tab"); // so that focus is of the keyboard
  await sorter.focus();
  const described = () => tab.evaluate(() => {
    const tip = document.getElementById("tip");
    const { bottom } = tip.getBoundingClientRect();
    return { hidden: tip.hidden, seen: bottom <= innerHeight, text: tip.textContent, meaning: document.activeElement.closest("th").dataset.tip, by: document.activeElement.getAttribute("aria-describedby") };
  });
  used.focused = await described();
  await tab.keyboard.press("Escape");
  used.escaped = await described();
}
used.figures = [];
for (const group of await tab.$$("figure [role=group]")) {
  if (!await group.isVisible()) continue;
  await group.focus();
  await tab.keyboard.press("ArrowRight");
  await tab.keyboard.press("ArrowRight");
  used.figures.push(await group.evaluate((element) => ({
    name: element.ariaLabel, stop: element.tabIndex === 0, marks: element.querySelectorAll("[data-tip], [data-cells]").length,
    scrolls: element.scrollWidth > element.clientWidth, told: document.getElementById("tip").hidden ? null : document.getElementById("tip").textContent,
    reached: element.querySelectorAll(".reached").length })));
}
await tab.setViewport({ width: 390, height: 900, hasTouch: true, isMobile: true });
used.scrolled = await tab.evaluate(() => [...document.querySelectorAll(".scroll")].filter((box) => box.querySelector("table")).map((box) => {
  box.scrollLeft = box.scrollWidth;
  const name = box.querySelector("tbody tr").cells[0].getBoundingClientRect();
  return { label: box.ariaLabel, by: box.scrollLeft, shift: name.left - box.getBoundingClientRect().left, share: name.width / box.clientWidth };
}));
const tapped = await tab.$("th[data-tip] button");
if (tapped) {
  await tapped.tap();
  used.tapped = await tab.evaluate(() => ({ sort: document.querySelectorAll("th[aria-sort]").length, hidden: document.getElementById("tip").hidden }));
}
used.touched = [];
for (const group of await tab.$$("figure [role=group]")) {
  const place = await group.evaluate((element) => {
    for (const mark of element.querySelectorAll("svg [data-tip]")) {
      mark.scrollIntoView({ block: "center" });
      const { left, top, width, height } = mark.getBoundingClientRect();
      const [x, y] = [left + width / 2, top + height / 2];
      if (document.elementFromPoint(x, y)?.closest("[data-tip]") === mark) return { x, y };
    }
    return null;
  });
  if (!place) continue;
  await tab.touchscreen.tap(place.x, place.y);
  used.touched.push(await tab.evaluate(() => !document.getElementById("tip").hidden));
}
await tab.setViewport({ width: 1280, height: 900 });
const theme = await tab.$("#theme");
await theme.click();
used.toggled = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
await theme.click();
// What the slider and the pointer mark on the screen is nothing to tell apart on paper.
used.paper = [];
for (const media of ["screen", "print"]) {
  await tab.emulateMediaType(media);
  used.paper.push(await tab.evaluate(() => {
    const slider = document.getElementById("round");
    const move = (value) => {
      slider.value = value;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    };
    if (!slider) return null;
    move("0");
    const shaded = [...document.querySelectorAll("[data-round] path")].filter((path) => getComputedStyle(path).fillOpacity !== "0").length;
    move(slider.max);
    return shaded;
  }));
}
used.broken = await tab.evaluate(() => [...document.querySelectorAll(".columns, figure, table, caption, h2, h3, .scroll:has(.results), .terms")].filter((part) => {
  const { breakInside, breakAfter } = getComputedStyle(part);
  return !breakInside.startsWith("avoid") && breakAfter !== "avoid";
}).map((part) => part.outerHTML.slice(0, 100)));
if (screenshots) await tab.pdf({ path: `${screenshots}/print.pdf`, format: "A4", preferCSSPageSize: true });
await browser.close();
console.log(JSON.stringify({ messages, requests, layouts, used }, null, 1));
