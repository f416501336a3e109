/* The page "you are the applicant": what a reader sees and does. All is computed by
   createModel (model.js); nothing here decides, follows or searches. */

import { createModel } from "./model.js";

const THUMB = 18; // pixels, as in style.css
const STEPS = 400; // of a slider
/* Places of the features in the graph: no arrow and no text runs through a circle. */
const PLACES = [
  [40, 118],
  [40, 258],
  [156, 312],
  [176, 62],
  [396, 120],
  [270, 238],
  [396, 238],
];
const HINTS = {
  be: "Describe yourself: the other features stay as they are.",
  do: "Act: what follows moves with it. Put a dot back, and it is no action any more.",
};
// the answers that a reader starts with, as places of words: those of the first applicant
const SCORES = [1, 2, 3, 5];
const THRESHOLDS = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
const THRESHOLD = 0.5; // that the bank has at first
const BEFORE = [1, 2, 3, 4]; // what counts when "can't" is taken back
const WHOSE = {
  icarma: "iCARMA",
  exact: "the exact search on a grid",
  any: "the search over all values",
  own: "what you do",
};

/* Return the markup of the page; a prefix of its ids lets two of them stand together. */
const markup = (prefix) => `<div class="inner">
  <header>
    <h1>You are the applicant</h1>
    <p>A bank's classifier has <span id="${prefix}verdict"></span> you. What can
      <em>you</em> do? Say what is hard for you, and see what is recommended, and what
      follows from it.</p>
  </header>

  <section class="you" aria-label="You">
    <div class="bar">
      <button type="button" id="${prefix}previous"
        aria-label="Previous applicant">◀</button>
      <span id="${prefix}who"></span>
      <button type="button" id="${prefix}next" aria-label="Next applicant">▶</button>
      <button type="button" id="${prefix}back">Start again</button>
    </div>
    <fieldset class="modes">
      <legend>Moving a dot:</legend>
      <label><input type="radio" name="${prefix}mode" value="be" checked>
        <span>describes me</span></label>
      <label><input type="radio" name="${prefix}mode" value="do">
        <span>is my action</span></label>
    </fieldset>
    <p id="${prefix}hint" class="hint"></p>
    <p class="hint">Numbers are differences from a reference: no money, no years.</p>
    <div id="${prefix}tracks"></div>
    <p class="legend"><span class="key icarma"></span> iCARMA, a trained network
      <span class="key exact"></span> exact search on a grid
      <span class="key third"></span> <span class="by-search">search over all
        values</span><span class="by-you">yourself</span>; a ring: it follows</p>
  </section>

  <section class="answers" aria-label="What to do">
    <div class="decision" id="${prefix}decision" role="status" aria-live="polite"></div>
    <p class="hint"><label>The bank says yes from a rating of
      <select id="${prefix}threshold">${THRESHOLDS.map(
        (share) => `<option value="${share}">${Math.round(100 * share)} %</option>`,
      ).join("")}</select></label>. <b>Plausible</b> is a profile at least as common as
      yours is now.</p>
    <svg class="graph" id="${prefix}graph" viewBox="0 0 464 352" role="img"></svg>
    <p class="hint">Blue: changed by an action. Yellow: it follows, along dashed arrows.
      Dotted arrows: switched off, as the action sets the value. Dashed circle: can't.</p>
    <p id="${prefix}scale" class="hint"></p>
    <div class="cards" id="${prefix}cards"></div>
    <div class="unlock" id="${prefix}unlock"></div>
  </section>

  <footer id="${prefix}about"></footer>
</div>`;

const shown = (value, digits = 1) =>
  value
    .toFixed(digits)
    .replace(/^-(0\.?0*)$/, "$1")
    .replace("-", "−");

/* Return two values with so many digits that a reader sees the difference. */
function shownApart(one, other, digits = 1) {
  const [from, to] = [shown(one, digits), shown(other, digits)];
  return from === to && digits < 9 ? shownApart(one, other, digits + 1) : [from, to];
}

/* Return a small positive number; what would be rounded to zero is said to be below. */
const shownCost = (cost) => (cost < 0.0005 ? "below 0.001" : shown(cost, 3));

/* Return a probability in percent; only one that is enough is shown as enough. */
function percent(share) {
  if (share < 0.01) return "below 1 %";
  return share > 0.99 ? "above 99 %" : `${Math.floor(100 * share)} %`;
}

/* Return how many times one density is another, from the nats between them, 0 or more. */
function times(nats) {
  const ratio = Math.exp(nats);
  if (ratio >= 1e6) return "over a million times";
  if (ratio >= 100) return `${Math.round(ratio).toLocaleString("en")} times`;
  return `${shownApart(1, ratio)[1]} times`;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function svg(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const isFar = (one, other) => Math.abs(one - other) > 1e-6; // standardised

let nMounted = 0;

/* Put the page into an element of a document, with the contents of model.json. */
export function mount(root, data) {
  const model = createModel(data);
  const prefix = nMounted > 0 ? `page${nMounted}-` : "";
  nMounted += 1;
  root.classList.add("applicant");
  root.innerHTML = markup(prefix);
  const byId = (id) => root.querySelector(`[id="${prefix}${id}"]`);
  const { features, columns, words, low, high } = model;
  const CANT = columns.length + 1;
  const FIXED = features.map((_, j) => j).filter((j) => !columns.includes(j));

  const nameOf = (j) => features[j].replace("_", " ");
  const toUnits = (j, value) => {
    const x = features.map(() => 0);
    x[j] = value;
    return model.inUnits(x)[j];
  };
  const fromUnits = (j, value) => {
    const units = features.map(() => 0);
    units[j] = value;
    return model.standardised(units)[j];
  };
  const inWords = (j, value) => shown(toUnits(j, value), features[j] === "gender" ? 0 : 1);
  /* Return a feature before and after, in words that differ wherever the values do. */
  const inWordsApart = (j, before, after) =>
    isFar(before, after)
      ? shownApart(toUnits(j, before), toUnits(j, after))
      : [inWords(j, before), inWords(j, before)];

  const state = {
    person: 0,
    x: model.applicants[0],
    scores: [...SCORES],
    before: [...BEFORE], // the last answer to each question that was not "can't"
    mode: "be",
    own: columns.map(() => null), // what the reader sets, or null
  };
  let slow = { exact: undefined, any: undefined }; // undefined: still searching

  // ------------------------------------------------------------------- building the page

  function slider(j) {
    const [least, most] = [toUnits(j, low[j]), toUnits(j, high[j])];
    const isGender = features[j] === "gender";
    const input = element("input", {
      type: "range",
      id: `${prefix}track-${j}`,
      min: least,
      max: most,
      step: isGender ? most - least : (most - least) / STEPS,
    });
    const value = () => fromUnits(j, Number(input.value));
    input.addEventListener("input", () => moved(j, value()));
    for (const end of ["pointerup", "keyup"]) {
      input.addEventListener(end, () => letGo(j, value()));
    }
    return input;
  }

  function track(j) {
    const value = element("span", { class: "value" });
    const label = element("label", { class: "name", for: `${prefix}track-${j}` });
    label.append(element("b", {}, nameOf(j)), " ", value);
    const box = element("div", { class: "track" });
    const k = columns.indexOf(j);
    const head = element("div", { class: "head" }, label);
    if (k >= 0) head.append(choices(j, k));
    box.append(head);
    if (k >= 0) box.append(element("div", { class: "lane icarma", "aria-hidden": true }));
    box.append(slider(j));
    if (k >= 0) {
      box.append(element("div", { class: "lane exact", "aria-hidden": true }));
      box.append(element("div", { class: "lane third", "aria-hidden": true }));
    }
    return box;
  }

  function choices(j, k) {
    const set = element("fieldset", { class: "words" });
    set.setAttribute("aria-label", `How hard is it to change the ${nameOf(j)}?`);
    words.forEach((word, i) => {
      const input = element("input", {
        type: "radio",
        name: `${prefix}score-${k}`,
        value: i + 1,
      });
      input.addEventListener("change", () => scored(k, i + 1));
      set.append(element("label", {}, input, element("span", {}, word)));
    });
    return set;
  }

  function build() {
    const fixed = element("div", { class: "fixed" }, ...FIXED.map(track));
    byId("tracks").append(fixed, ...columns.map(track));
    const graph = byId("graph");
    model.parents.forEach((causes, j) =>
      causes.forEach((i) => {
        const [[x1, y1], [x2, y2]] = [PLACES[i], PLACES[j]];
        const length = Math.hypot(x2 - x1, y2 - y1);
        const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
        const ends = {
          x1: x1 + 40 * dx,
          y1: y1 + 40 * dy,
          x2: x2 - 46 * dx,
          y2: y2 - 46 * dy,
        };
        graph.append(
          svg("line", {
            id: `${prefix}edge-${i}-${j}`,
            ...ends,
            "marker-end": `url(#${prefix}tip)`,
          }),
        );
      }),
    );
    const marker = svg("marker", {
      id: `${prefix}tip`,
      viewBox: "0 0 8 8",
      refX: 5,
      refY: 4,
      orient: "auto",
      markerWidth: 10,
      markerHeight: 10,
      markerUnits: "userSpaceOnUse",
    });
    marker.append(svg("path", { d: "M0 0 8 4 0 8z", fill: "context-stroke" }));
    graph.prepend(marker);
    features.forEach((_, j) => {
      const [cx, cy] = PLACES[j];
      const node = svg("g", { id: `${prefix}node-${j}` });
      node.append(svg("circle", { cx, cy, r: 38 }));
      const parts = nameOf(j).split(" ");
      parts.forEach((part, i) => {
        const y = cy + 5 + 15 * (i - (parts.length - 1) / 2);
        node.append(svg("text", { class: "label", x: cx, y }, part));
      });
      const y = cy + (cy < 150 ? -44 : 54); // above or below, where no arrow arrives
      node.append(svg("text", { class: "moved", x: cx, y }, ""));
      graph.append(node);
    });
    const { member, seed } = model.network;
    byId("about").textContent =
      "Features are centred and in model units; gender 1 is the group with the higher " +
      "income. People are simulated, so that the true equations are known: what follows " +
      `here follows by them. iCARMA is member ${member} (seed ${seed}) of the networks ` +
      "for scores with a linear profile: of ten, the one that helps most validation " +
      "people. How common a profile is, a flow says that learned from other people.";
    const [least, most] = [1, CANT - 1].map((score) => model.weightsOf([score])[0]);
    byId("scale").textContent =
      "Cost: the squared changes, added up. What is very hard for you weighs " +
      `${shown(most / least, 0)} times what is easy. A cost is there to compare answers; ` +
      "0 is no change.";
  }

  // ------------------------------------------------------------------ what a reader does

  function moved(j, value) {
    const k = columns.indexOf(j);
    if (state.mode === "do" && k >= 0) state.own[k] = value;
    else state.x = state.x.map((own, i) => (i === j ? value : own));
    changed();
  }

  /* Take an action back if its dot is let go at the person's own value. While the dot is
     held it may pass there. */
  function letGo(j, value) {
    const k = columns.indexOf(j);
    if (k < 0 || state.own[k] === null) return;
    if (Math.abs(value - state.x[j]) > (high[j] - low[j]) / STEPS / 2) return;
    state.own[k] = null;
    changed();
  }

  function scored(k, score) {
    state.scores[k] = score;
    if (score === CANT) state.own[k] = null;
    else state.before[k] = score;
    changed();
  }

  function acceptFrom(share) {
    byId("threshold").value = share;
    model.acceptFrom(share);
    changed();
  }

  function become(person) {
    state.person = (person + model.applicants.length) % model.applicants.length;
    state.x = model.applicants[state.person];
    state.own = columns.map(() => null);
    changed();
  }

  byId("next").addEventListener("click", () => become(state.person + 1));
  byId("previous").addEventListener("click", () => become(state.person - 1));
  byId("back").addEventListener("click", () => {
    state.scores = [...SCORES];
    state.before = [...BEFORE];
    state.mode = "be";
    acceptFrom(THRESHOLD);
    become(state.person);
  });
  byId("threshold").addEventListener("change", (event) =>
    acceptFrom(Number(event.target.value)),
  );
  root.querySelectorAll(`[name="${prefix}mode"]`).forEach((input) =>
    input.addEventListener("change", () => {
      state.mode = input.value;
      state.own = columns.map(() => null);
      changed();
    }),
  );

  // --------------------------------------------------------------- computing and drawing

  let waiting = 0;

  /* Draw at once what is known at once; the searches follow when the reader pauses. */
  function changed() {
    slow = { exact: undefined, any: undefined };
    draw();
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const start = performance.now();
      if (model.logOdds(state.x) < 0) {
        const weights = model.weightsOf(state.before); // what is closed has a price, too
        const may = model.mayActOn(state.scores);
        const exact = model.exact(model.truth, state.x, state.scores);
        const table = model.searched(model.truth, state.x, weights);
        slow = {
          exact: judged(exact),
          any: judged(model.cheapest(table, may)),
          table,
          may,
        };
        draw();
      }
      root.dataset.searched = performance.now() - start; // milliseconds
      root.dataset.settled = "yes";
    }, 60);
    root.dataset.settled = "no";
  }

  const judged = (action) =>
    action &&
    model.outcome(
      model.truth,
      state.x,
      action.acts,
      action.values,
      model.weightsOf(state.scores),
    );

  function draw() {
    const isRefused = model.logOdds(state.x) < 0;
    const own = judged({
      acts: state.own.map((value) => value !== null),
      values: state.own,
    });
    const icarma = isRefused ? judged(model.recommended(state.x, state.scores)) : null;
    const whose = state.mode === "do" ? "own" : bestOf({ icarma, ...slow });
    const first = { own, icarma, ...slow }[whose];
    root.dataset.mode = state.mode;
    drawControls(own);
    columns.forEach((j, k) => {
      drawLane(j, k, "icarma", icarma);
      drawLane(j, k, "exact", slow.exact);
      drawLane(j, k, "third", state.mode === "do" ? own : slow.any);
    });
    drawDecision(isRefused, first, whose);
    drawGraph(first);
    drawCards(isRefused, icarma, own);
    drawUnlock(isRefused);
  }

  /* Return whose answer is the cheapest of those that hold; where none does, iCARMA. */
  function bestOf(answers) {
    const holding = ["icarma", "exact", "any"].filter(
      (whose) => answers[whose]?.isValid && answers[whose].isPlausible,
    );
    holding.sort((a, b) => answers[a].weightedCost - answers[b].weightedCost);
    return holding[0] ?? "icarma";
  }

  function drawControls(own) {
    byId("who").textContent = `applicant ${state.person + 1} of ${model.applicants.length}`;
    byId("hint").textContent = HINTS[state.mode];
    features.forEach((_, j) => {
      const k = columns.indexOf(j);
      const input = byId(`track-${j}`);
      const isDone = state.mode === "do";
      input.value = toUnits(j, isDone ? own.after[j] : state.x[j]);
      input.disabled = isDone && (k < 0 || state.scores[k] === CANT);
      const value = input.closest(".track").querySelector(".value");
      const isShown = isDone && isFar(state.x[j], own.after[j]);
      const both = inWordsApart(j, state.x[j], own.after[j]);
      value.textContent = isShown ? both.join(" → ") : inWords(j, state.x[j]);
      input.setAttribute("aria-valuetext", value.textContent);
    });
    state.scores.forEach((score, k) => {
      root.querySelector(`[name="${prefix}score-${k}"][value="${score}"]`).checked = true;
    });
    root.querySelector(`[name="${prefix}mode"][value=${state.mode}]`).checked = true;
  }

  /* Draw on a lane of a track where an answer moves this feature. */
  function drawLane(j, k, which, answer) {
    const lane = byId(`track-${j}`).closest(".track").querySelector(`.lane.${which}`);
    lane.replaceChildren();
    if (!answer || !isFar(answer.after[j], state.x[j])) return;
    const share = (value) =>
      Math.min(Math.max((value - low[j]) / (high[j] - low[j]), 0), 1);
    const [from, to] = [share(state.x[j]), share(answer.after[j])];
    const at = (p) => `calc(${THUMB / 2}px + ${p} * (100% - ${THUMB}px))`;
    const isLeft = to < from;
    const follows = !answer.acts[k];
    if (!follows) {
      const stem = element("span", { class: "stem" });
      stem.style.left = at(Math.min(from, to));
      stem.style.width = `calc(${Math.abs(to - from)} * (100% - ${THUMB}px))`;
      lane.append(stem);
    }
    const tip = element("span", {
      class: `tip${isLeft ? " left" : ""}${follows ? " follows" : ""}`,
    });
    tip.style.left = at(to);
    const before = isLeft ? to > 0.15 : to > 0.85; // beside the tip, where there is room
    const text = element(
      "span",
      { class: `text${before ? " before" : ""}` },
      `${inWordsApart(j, state.x[j], answer.after[j])[1]}${follows ? " follows" : ""}`,
    );
    const ends = follows ? [to, to] : [Math.min(from, to), Math.max(from, to)];
    text.style.left = at(ends[before ? 0 : 1]);
    lane.append(tip, text);
  }

  function pill(isYes, isPlausible = true) {
    const kind = !isYes ? "no" : isPlausible ? "yes" : "but";
    const said = { no: "refused", yes: "accepted", but: "accepted, implausible" }[kind];
    return element("span", { class: `pill ${kind}` }, said);
  }

  function drawDecision(isRefused, answer, whose) {
    const said = (text) => element("span", {}, text);
    byId("verdict").textContent = isRefused ? "refused" : "accepted";
    const now = `rating ${percent(model.probability(state.x))}`;
    const parts = [pill(!isRefused), said(now)];
    if (answer?.acts.some(Boolean)) {
      parts.push(said("→"), pill(answer.isValid, answer.isPlausible));
      parts.push(said(`${percent(answer.probability)}, by ${WHOSE[whose]}`));
    }
    byId("decision").replaceChildren(...parts);
  }

  function drawGraph(answer) {
    const isActed = (j) => Boolean(answer?.acts[columns.indexOf(j)]);
    const isMoved = (j) => answer && isFar(answer.after[j], state.x[j]);
    const told = [];
    features.forEach((_, j) => {
      const k = columns.indexOf(j);
      const node = byId(`node-${j}`);
      const isClosed = k >= 0 && state.scores[k] === CANT;
      const follows = isMoved(j) && !isActed(j);
      const kind = isActed(j) ? "acted" : follows ? "follows" : "";
      node.setAttribute("class", `${kind}${isClosed ? " closed" : ""}`);
      const change = isMoved(j) ? changeOf(j, answer) : "";
      node.querySelector(".moved").textContent = change;
      if (isMoved(j))
        told.push(`${nameOf(j)} ${follows ? "follows" : "is set"}, ${change}`);
      model.parents[j].forEach((i) => {
        const isLit = follows && isMoved(i);
        byId(`edge-${i}-${j}`).setAttribute(
          "class",
          isLit ? "lit" : isActed(j) ? "cut" : "",
        );
      });
    });
    byId("graph").setAttribute(
      "aria-label",
      `Causal graph of the features. ${told.join("; ") || "Nothing moves"}.`,
    );
  }

  /* Return a feature before and after an answer. */
  const changeOf = (j, answer) =>
    inWordsApart(j, state.x[j], answer.after[j]).join(" → ");

  /* Return what an answer asks for, in words: its actions, then what follows. */
  function told(answer) {
    const change = (j) => `${nameOf(j)} ${changeOf(j, answer)}`;
    const acts = columns.filter((_, k) => answer.acts[k]).map(change);
    const follows = columns
      .filter((j, k) => !answer.acts[k] && isFar(answer.after[j], state.x[j]))
      .map(change);
    return { acts, follows };
  }

  function plausibility(gain) {
    if (gain >= 0.05) return `a profile ${times(gain)} as common as yours now`;
    if (gain >= 0) return "a profile as common as yours now";
    return `a profile ${times(-gain)} as rare as yours now`;
  }

  function card(kind, title, what, answer, nothing) {
    const box = element("div", { class: `card ${kind}` }, element("h2", {}, title));
    if (what) box.append(element("p", { class: "small what" }, what));
    if (!answer?.acts.some(Boolean)) {
      box.append(element("p", {}, nothing));
      return box;
    }
    const { acts, follows } = told(answer);
    const holds = answer.isValid && answer.isPlausible;
    const lead = kind === "own" ? "You do: " : holds ? "Do: " : "It proposes: ";
    box.append(element("p", {}, lead, element("b", {}, acts.join(", "))));
    if (follows.length) {
      box.append(element("p", { class: "follow" }, `Then follows: ${follows.join(", ")}`));
    }
    if (!holds) {
      const lacks = answer.isValid
        ? "The bank says yes, but this is not plausible."
        : "Not enough: the bank still says no.";
      box.append(element("p", {}, lacks));
    }
    const rest = `${plausibility(answer.gain)}; cost ${shownCost(answer.weightedCost)}`;
    const line = holds ? `The bank says yes; ${rest}.` : `It makes ${rest}.`;
    box.append(element("p", { class: "small" }, line));
    return box;
  }

  function drawCards(isRefused, icarma, own) {
    const cards = [];
    if (state.mode === "do") {
      const nothing = "Nothing yet: move a dot.";
      cards.push(card("own", "What you do yourself", "", own, nothing));
    }
    if (!isRefused) {
      const said = "The bank accepts you as you are: there is nothing to do.";
      byId("cards").replaceChildren(...cards, element("p", {}, said));
      return;
    }
    const isSearching = slow.exact === undefined;
    if (!model.mayActOn(state.scores).some(Boolean)) {
      const said = "You say that you can change nothing, so nothing can be recommended.";
      byId("cards").replaceChildren(...cards, element("p", {}, said));
      return;
    }
    const nOpen = model.mayActOn(state.scores).filter(Boolean).length;
    const nActions = ((model.nValues + 1) ** nOpen - 1).toLocaleString("en");
    const ofExact = `None of ${nActions} actions is both enough and plausible.`;
    const ofAny = "It finds nothing that is both enough and plausible.";
    const none = (text) => (isSearching ? "Searching …" : text);
    const exactly = `Exact search on a grid (${model.nValues} values a feature)`;
    const what = {
      icarma: "A network that learned from other people. It checks nothing.",
      exact: "The cheapest answer on the grid. Between its values may be a cheaper one.",
      any: "It promises nothing, and mostly finds what is cheaper.",
    };
    cards.push(
      card("icarma", "iCARMA, at once", what.icarma, icarma, "It recommends nothing."),
      card("exact", exactly, what.exact, slow.exact, none(ofExact)),
      card("any", "Search over all values", what.any, slow.any, none(ofAny)),
    );
    if (!isSearching) {
      const asked = slow.any
        ? "Why this answer (search over all values)?"
        : "Why does the search over all values find nothing?";
      const why = element("div", { class: "card why" }, element("h2", {}, asked));
      const lines = slow.any ? reasons(slow.any) : [blocked()];
      why.append(...lines.map((line) => element("p", {}, line)));
      cards.push(why);
    }
    byId("cards").replaceChildren(...cards);
  }

  /* Return for each feature of an answer what it would cost without, from the table of the
     search: the other features may be set anew. */
  function reasons(answer) {
    return columns.flatMap((j, k) => {
      if (!answer.acts[k]) return [];
      const others = slow.may.map((own, i) => own && i !== k);
      const without = `Without acting on your ${nameOf(j)}`;
      if (!others.some(Boolean))
        return [`${without} there is nothing left: it is all that you left open.`];
      const row = model.cheapest(slow.table, others);
      if (!row) return [`${without}, nothing was found: ${obstacle(others)}.`];
      const digits = Math.max(3, Math.ceil(-Math.log10(answer.weightedCost)));
      const [now, then] = shownApart(answer.weightedCost, row.cost, digits);
      return [`${without}, the cheapest answer found costs ${then} instead of ${now}.`];
    });
  }

  /* Return what blocks somebody who may do so much, and has no answer in the table. */
  function obstacle(may) {
    const rarer = leastLost(may);
    return rarer === Infinity
      ? "of all that was tried, the bank accepted nothing"
      : "all that was tried and accepted makes your profile " +
          `${times(rarer)} as rare, or rarer`;
  }

  /* Return the nats of plausibility that every accepted action loses; infinite if none is. */
  function leastLost(may) {
    const open = slow.table.filter((row) => row.acts.every((a, k) => !a || may[k]));
    return Math.max(-Math.max(...open.map((row) => row.gain)), 0);
  }

  function blocked() {
    const said = obstacle(slow.may);
    const isClose = leastLost(slow.may) < 0.05 ? " So very little is missing." : "";
    return `${said[0].toUpperCase()}${said.slice(1)}.${isClose}`;
  }

  function drawUnlock(isRefused) {
    const box = byId("unlock");
    box.replaceChildren();
    if (!isRefused || slow.exact === undefined || slow.any || slow.exact) return;
    const prices = model.unlockedBy(slow.table, slow.may);
    const ways = columns
      .map((_, k) => ({ opened: [k], cost: prices[k] }))
      .filter(({ opened, cost }) => !slow.may[opened[0]] && cost < Infinity);
    const key = model.keyOf(slow.table, slow.may);
    if (!ways.length && key) {
      const opened = columns.map((_, k) => k).filter((k) => key.more[k]);
      ways.push({ opened, cost: key.cost });
    }
    if (slow.may.every(Boolean)) return; // nothing is closed
    const none = "To open what you closed would not help.";
    box.append(element("b", {}, ways.length ? "What would unlock it:" : none));
    for (const { opened, cost } of ways) {
      const word = (k) => words[state.before[k] - 1];
      const names = opened.map((k) => `${nameOf(columns[k])}, if ${word(k)}`).join(" and ");
      const text = `${names} (cost ${shownCost(cost)})`;
      const button = element("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        opened.forEach((k) => scored(k, state.before[k]));
        root.querySelector(`[name="${prefix}score-${opened[0]}"]:checked`).focus();
      });
      box.append(button);
    }
  }

  build();
  acceptFrom(THRESHOLD);
}
