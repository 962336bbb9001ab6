"use strict";
(() => {
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

  // Tooltips
  const tip = make("div", { id: "tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  document.querySelector(".page").append(tip);
  const cellAt = (image, event) => {
    const { names, values, what } = JSON.parse(image.dataset.cells);
    const box = image.getBoundingClientRect();
    const place = (part) => Math.min(names.length - 1, Math.max(0, Math.floor(part * names.length)));
    const row = place((event.clientY - box.top) / box.height);
    const column = place((event.clientX - box.left) / box.width);
    return `${names[row]}\n${names[column]}\n${what} ${values[row][column]}`;
  };
  let marked = [];
  const hide = () => {
    marked.forEach((element) => element.classList.remove("same"));
    marked = [];
    tip.hidden = true;
    document.querySelector("[aria-describedby=tip]")?.removeAttribute("aria-describedby");
  };
  const place = (left, top) => {
    const right = scrollX + root.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(scrollX + 4, Math.min(left, right))}px`;
    tip.style.top = `${top}px`;
  };
  const show = (event) => {
    const target = event.target.closest?.("[data-tip], [data-cells]");
    hide();
    if (!target) return;
    tip.hidden = false;
    tip.textContent = target.dataset.tip ?? cellAt(target, event);
    const client = target.dataset.client;
    if (client !== undefined) {
      marked = all(`figure svg [data-client="${CSS.escape(client)}"]`);
      marked.forEach((element) => element.classList.add("same"));
    }
    place(event.pageX + 14, event.pageY + 16);
  };
  const showFocused = ({ target }) => {
    const described = target.closest("[data-tip]");
    if (!described || !target.matches(":focus-visible")) return;
    hide();
    tip.hidden = false;
    tip.textContent = described.dataset.tip;
    target.setAttribute("aria-describedby", "tip");
    const box = target.getBoundingClientRect();
    place(scrollX + box.left, scrollY + box.bottom + 6);
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("focusin", showFocused);
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // Paper has room for the meaning of columns.
  const closed = all("details.terms");
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

  // Rounds and hypotheses
  const known = document.getElementById("history");
  if (known) explore(JSON.parse(known.textContent));

  function explore(history) {
    const panel = document.querySelector(".explorer");
    const last = history.rounds.length - 1;
    const slider = make("input", { type: "range", id: "round", min: 0, max: last, value: last });
    const round = make("output");
    round.htmlFor = "round";
    const methods = Object.keys(history.methods).filter((m) => history.methods[m].kept.some((k) => k.weights.length > 1));
    const picker = make("select", { id: "hypothesis" });
    panel.append(make("label", {}, "Round ", slider), round);
    if (methods.length) panel.append(make("label", {}, "Hypothesis ", picker));
    panel.hidden = false;
    const caption = document.querySelector('figure:has([id^="graph-"]) figcaption');
    const believed = caption.textContent;

    const fill = () => {
      const chosen = picker.value;
      const options = [make("option", { value: "", textContent: "all kept, by weight" })];
      for (const method of methods) {
        const { weights } = history.methods[method].kept[slider.value] ?? { weights: [] };
        const group = make("optgroup", { label: method });
        weights.forEach((weight, i) => {
          group.append(make("option", { value: `${method}/${i}`, textContent: `${method}, ${i + 1}: weight ${(100 * weight).toFixed(1)} %` }));
        });
        options.push(group);
      }
      picker.replaceChildren(...options);
      picker.value = all("option", picker).some((o) => o.value === chosen) ? chosen : "";
    };

    const draw = () => {
      const index = Number(slider.value);
      const number = history.rounds[index];
      round.textContent = `${number} of ${history.rounds[last]}`;
      slider.setAttribute("aria-valuetext", `round ${number}`);
      all("[data-round].now").forEach((e) => e.classList.remove("now"));
      if (index < last) all(`[data-round="${number}"]`).forEach((e) => e.classList.add("now"));
      const [owner, rank] = picker.value ? picker.value.split("/") : [null, null];
      const shown = owner ? `hypothesis ${Number(rank) + 1} of ${owner}` : "the kept hypotheses";
      const words = methods.length ? `in ${shown} after round ${number}` : `after round ${number}`;
      caption.textContent = index === last && !owner ? believed : believed.replace("as believed after the last round", words);
      for (const [method, known] of Object.entries(history.methods)) {
        redraw(method, known, index, owner === method ? Number(rank) : null, index === last && owner !== method);
        dim(method, owner === method ? known.kept[index].lines[rank] : null);
      }
    };

    const redraw = (method, known, index, rank, original) => {
      const edges = all(`[id^="graph-edges-${CSS.escape(method)}-"]`).filter((e) => /^\d+$/.test(e.id.slice(`graph-edges-${method}-`.length)));
      const clients = all(`[id^="graph-clients-${CSS.escape(method)}-group-"]`);
      if (!clients.length) return;
      const axes = clients[0].parentNode;
      axes.querySelector(".drawn")?.remove();
      edges.forEach((e) => e.classList.toggle("replaced", !original));
      if (original || !known.kept[index]) return;
      const nodes = clients.flatMap((group) => all("use", group)).filter((use) => use.dataset.client in known.places);
      const { weights, labels } = known.kept[index];
      const used = rank === null ? weights.map((w, i) => [w, labels[i]]) : [[1, labels[rank]]];
      const total = used.reduce((sum, [w]) => sum + w, 0);
      const paths = new Map();
      nodes.forEach((one, i) => nodes.slice(i + 1).forEach((other) => {
        const [a, b] = [one, other].map((use) => known.places[use.dataset.client]);
        let p = 0;
        for (const [w, which] of used) {
          const clusters = known.partitions[which];
          if (clusters[a] !== "-" && clusters[a] === clusters[b]) p += w / total;
        }
        if (p < 0.05) return;
        const level = Math.max(1, Math.round(12 * p));
        const line = `M${one.getAttribute("x")} ${one.getAttribute("y")}L${other.getAttribute("x")} ${other.getAttribute("y")}`;
        paths.set(level, (paths.get(level) ?? "") + line);
      }));
      const layer = document.createElementNS(axes.namespaceURI, "g");
      layer.setAttribute("class", "drawn");
      for (const [level, line] of paths) {
        const path = document.createElementNS(axes.namespaceURI, "path");
        path.setAttribute("d", line);
        path.setAttribute("class", "shared");
        path.style.strokeWidth = 0.15 + 0.85 * level / 12;
        path.style.strokeOpacity = 0.2 + 0.45 * level / 12;
        layer.append(path);
      }
      axes.insertBefore(layer, clients[0]);
    };

    const dim = (method, line) => {
      for (const start of [`ribbons-ribbon-${method}-`, `ribbons-narrow-ribbon-${method}-`]) {
        for (const ribbon of all(`[id^="${CSS.escape(start)}"]`)) {
          const name = ribbon.id.slice(start.length);
          if (/^r\d+[hp]\d+$/.test(name)) ribbon.classList.toggle("other", line !== null && name !== line);
        }
      }
    };

    slider.addEventListener("input", () => { fill(); draw(); });
    picker.addEventListener("change", draw);
    fill();
    draw();
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
})();
