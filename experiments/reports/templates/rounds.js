// Rounds and hypotheses
const known = document.getElementById("history");
if (known) explore(JSON.parse(known.textContent));

function explore(history) {
  const panel = document.querySelector(".explorer");
  const last = history.rounds.length - 1;
  const BELIEVED = "believed", KEPT = "kept", DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const slider = make("input", { type: "range", id: "round", min: 0, max: last, value: last });
  const round = make("output");
  round.htmlFor = "round";
  if (history.steps.length) round.className = "steps";
  const methods = Object.keys(history.methods).filter((m) => history.methods[m].kept.some((k) => k.weights.length > 1));
  const picker = make("select", { id: "hypothesis" });
  panel.append(make("label", {}, "Round ", slider), round, make("label", {}, "Edges ", picker));
  panel.hidden = false;
  const caption = document.querySelector('figure:has([id^="graph-"]) figcaption');
  const believed = caption.textContent;

  const fill = () => {
    const chosen = picker.value || BELIEVED;
    const options = [
      make("option", { value: BELIEVED, textContent: `beliefs after round ${history.rounds[last]}` }),
      make("option", { value: KEPT, textContent: methods.length ? "kept hypotheses, by weight" : "clusters of the round" }),
    ];
    for (const method of methods) {
      const { weights } = history.methods[method].kept[slider.value] ?? { weights: [] };
      const group = make("optgroup", { label: method });
      weights.forEach((weight, i) => {
        group.append(make("option", { value: `${method}/${i}`, textContent: `${method}, rank ${i + 1}: weight ${(100 * weight).toFixed(1)} %` }));
      });
      options.push(group);
    }
    picker.replaceChildren(...options);
    picker.value = all("option", picker).some((o) => o.value === chosen) ? chosen : KEPT;
  };

  // In a stream a client has the shape and colour of its concept at the time step of the round, as in the legend.
  const looks = new Map(all('g[id^="graph-concept-"]').map((entry) => {
    const use = entry.querySelector("use"), shape = document.getElementById(use.getAttribute("xlink:href").slice(1)).cloneNode(true);
    shape.id = `${entry.id}-shape`;
    shape.setAttribute("transform", `scale(${history.size})`);
    const defs = document.createElementNS(entry.namespaceURI, "defs");
    defs.append(shape);
    entry.append(defs);
    return [entry.id.slice("graph-concept-".length), { href: `#${shape.id}`, style: use.getAttribute("style") }];
  }));
  const UNKNOWN = { href: looks.values().next().value?.href, style: "fill: var(--faint)" };
  const clientsOf = (method) => all(`[id^="graph-clients-${CSS.escape(method)}-group-"] use`);
  const originals = new Map(Object.keys(history.methods).flatMap(clientsOf).map((use) => {
    return [use, { href: use.getAttribute("xlink:href"), style: use.getAttribute("style"), tip: use.dataset.tip }];
  }));
  const clusterOf = (letter) => {
    const number = DIGITS.indexOf(letter);
    return number < 0 ? letter.charCodeAt(0) - 0xE000 : number;
  };
  const tipOf = (client, method, known, index, rank) => {
    const { labels } = known.kept[index], number = history.rounds[index];
    const letter = known.partitions[labels[rank ?? 0]]?.[known.places[client]] ?? "-";
    const alone = labels.length > 1 ? ` in the hypothesis of rank ${(rank ?? 0) + 1}` : "";
    return `${client}\n${method}, round ${number}: ${letter === "-" ? "no cluster yet" : `cluster ${clusterOf(letter)}${alone}`}`;
  };
  const relook = (method, known, index, rank, beliefs) => {
    for (const use of clientsOf(method)) {
      const { client } = use.dataset, original = originals.get(use);
      const concepts = history.concepts[client];
      const concept = concepts?.[Math.min(history.steps[index], concepts.length - 1)];
      const look = index < last && concepts ? looks.get(String(concept)) ?? UNKNOWN : original;
      use.setAttribute("href", look.href);
      use.setAttribute("style", look.style);
      const group = concepts ? (concept ?? null) === null ? "" : `\nconcept ${concept}` : original.tip.match(/\ntrue group .*/)?.[0] ?? "";
      use.dataset.tip = beliefs ? original.tip : tipOf(client, method, known, index, rank) + group;
    }
  };

  const draw = () => {
    const index = Number(slider.value);
    const number = history.rounds[index];
    const step = history.steps.length ? `, time step ${history.steps[index]}` : "";
    round.textContent = `${number} of ${history.rounds[last]}${step}`;
    slider.setAttribute("aria-valuetext", `round ${number}${step}`);
    all("[data-round].now").forEach((e) => e.classList.remove("now"));
    if (index < last) all(`[data-round="${number}"]`).forEach((e) => e.classList.add("now"));
    const beliefs = picker.value === BELIEVED;
    const [owner, rank] = beliefs || picker.value === KEPT ? [null, null] : picker.value.split("/");
    const shown = methods.length ? "the kept hypotheses" : "the clusters";
    const alone = owner ? `, of ${owner} in the hypothesis of rank ${Number(rank) + 1} alone` : "";
    caption.textContent = beliefs ? believed : believed.replace("as believed after the last round", `in ${shown} after round ${number}${alone}`);
    for (const [method, kept] of Object.entries(history.methods)) {
      redraw(method, kept, index, owner === method ? Number(rank) : null, beliefs);
      relook(method, kept, index, owner === method ? Number(rank) : null, beliefs);
      dim(method, owner === method ? kept.kept[index].lines[rank] : null);
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
    const paths = history.edges.map(() => "");
    nodes.forEach((one, i) => nodes.slice(i + 1).forEach((other) => {
      const [a, b] = [one, other].map((use) => known.places[use.dataset.client]);
      let p = 0;
      for (const [w, which] of used) {
        const clusters = known.partitions[which];
        if (clusters[a] !== "-" && clusters[a] === clusters[b]) p += w / total;
      }
      if (p < 0.05) return;
      const level = Math.max(1, Math.round(paths.length * p));
      paths[level - 1] += `M${one.getAttribute("x")} ${one.getAttribute("y")}L${other.getAttribute("x")} ${other.getAttribute("y")}`;
    }));
    const layer = document.createElementNS(axes.namespaceURI, "g");
    layer.setAttribute("class", "drawn");
    paths.forEach((line, i) => {
      if (!line) return;
      const [width, opacity] = history.edges[i];
      const path = document.createElementNS(axes.namespaceURI, "path");
      path.setAttribute("d", line);
      path.setAttribute("class", "shared");
      path.style.strokeWidth = width;
      path.style.stroke = `color-mix(in srgb, var(--edge) ${100 * opacity}%, var(--paper))`;
      layer.append(path);
    });
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

  // Beliefs are known of the last round only, so that other rounds show the hypotheses, and the picker says so.
  slider.addEventListener("input", () => {
    if (picker.value === BELIEVED && Number(slider.value) < last) picker.value = KEPT;
    fill();
    draw();
  });
  picker.addEventListener("change", () => {
    if (picker.value === BELIEVED) slider.value = last;
    fill();
    draw();
  });
  fill();
  draw();
}
