/* The page "you are the applicant": a story of five steps. All is computed by createModel
   (model.js); nothing here decides, follows or searches. */

import { createModel } from "./model.js";

const STEPS = [
  "You",
  "What is hard for you",
  "What you could do",
  "What follows, and why",
  "What would unlock a no",
];
/* Places of the features in the graph: no arrow and no text runs through a circle. */
const PLACES = [
  [38, 104],
  [38, 216],
  [140, 262],
  [160, 54],
  [408, 104],
  [262, 200],
  [408, 216],
];
const RADIUS = 36;
// what lowering and raising a feature is called, and what happens where it follows
const DEEDS = {
  loan_amount: ["ask for a smaller loan", "ask for a larger loan"],
  loan_duration: ["pay it back sooner", "take longer to pay it back"],
  income: ["earn less", "earn more"],
  savings: ["save less", "save more"],
};
const WHOSE = {
  plan0: "Search",
  plan1: "Search, a second way",
  plan2: "Search, a third way",
  instant: "iCARMA, checked",
  printed: "iCARMA as printed",
  grid: "Search on a grid",
  own: "What you try",
};
const WHAT = {
  plan0: "the least effort that was found, in a tenth of a second",
  plan1: "spares something that the first asks for",
  plan2: "spares something that each of the others asks for",
  instant: "a network's answer at once, kept within your limits; it asks for more",
  printed: "the same network, unchecked; it has not heard directions and limits",
  grid: "the least effort among 25 values of each feature; in between may be less",
  own: "your own dots in step 4",
};
const N_PLANS = 3;
// directions, as they stand beside each other: said, shown, and read aloud
const WAYS = [
  ["down", "↓", "only down"],
  ["any", "↕", "up or down"],
  ["up", "↑", "only up"],
];
const ENDS = [5, 10, 25, 50, 75, 90, 95]; // places that a person may not want to pass
const THRESHOLDS = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
const AT_ONCE = 12; // milliseconds of searching before the page is free again
const THUMB = 18; // pixels, as in style.css
// what a reader starts with, the answers of the first applicant, as places of words
const SCORES = [1, 2, 3, 5];
const BEFORE = [1, 2, 3, 4]; // what counts when "can't" is taken back

/* Return the markup of the page; a prefix of its ids lets two of them stand together. */
const markup = (prefix) => `<div class="inner">
  <header>
    <h1>You are the applicant</h1>
    <div class="bar">
      <button type="button" id="${prefix}previous"
        aria-label="Previous applicant">◀</button>
      <span id="${prefix}who"></span>
      <button type="button" id="${prefix}next" aria-label="Next applicant">▶</button>
      <button type="button" id="${prefix}back">Start again</button>
    </div>
  </header>
  <nav class="steps" aria-label="Steps">${STEPS.map(
    (title, i) =>
      `<button type="button" data-to="${i + 1}" aria-label="${i + 1} ${title}"><b>${i + 1}</b>
        <span>${title}</span></button>`,
  ).join("")}</nav>
  <section class="outcome" aria-label="What comes of it">
    <div class="decision" id="${prefix}decision"></div>
    <p id="${prefix}headline"></p>
    <p id="${prefix}enough" class="small"></p>
    <p id="${prefix}whose" class="small"></p>
  </section>
  <section class="picture" aria-label="The causal graph">
    <svg class="graph" id="${prefix}graph" viewBox="-8 0 468 312" role="img"></svg>
    <p class="hint">Blue: you set it. Yellow: it follows. Dashed circle: can't.
      <span class="more">Dotted arrows: switched off, since you set where they lead.</span></p>
  </section>
  <section class="panel">
    <div class="step" data-step="1">
      <h2 tabindex="-1">You are <span id="${prefix}verdict"></span></h2>
      <p id="${prefix}rated"></p>
      <p class="hint">A number is a place among 100 people: income 72 is more than 72 of
        100 have. Move a dot to be somebody else.</p>
      <div id="${prefix}yourself" class="tracks"></div>
      <p class="hint"><label>The bank says yes from a rating of
        <select id="${prefix}threshold">${THRESHOLDS.map(
          (share) => `<option value="${share}">${Math.round(100 * share)} %</option>`,
        ).join("")}</select></label></p>
    </div>
    <div class="step" data-step="2">
      <h2 tabindex="-1">What is hard for you?</h2>
      <p class="hint">And may it fall, rise, or both, and how far? The arrows show the
        answer.</p>
      <div id="${prefix}hard"></div>
    </div>
    <div class="step" data-step="3">
      <h2 tabindex="-1">What you could do</h2>
      <fieldset id="${prefix}answers" aria-label="Who answers"></fieldset>
    </div>
    <div class="step" data-step="4">
      <h2 tabindex="-1">What follows, and why</h2>
      <p class="hint">Try it yourself: move a dot, and what follows moves with it. Put it
        back, and it is no action any more.</p>
      <div id="${prefix}try" class="tracks"></div>
      <p><button type="button" id="${prefix}untry">Back to the answer</button></p>
      <div id="${prefix}follows"></div>
    </div>
    <div class="step" data-step="5">
      <h2 tabindex="-1">What would unlock a no?</h2>
      <div id="${prefix}unlock" class="unlock"></div>
    </div>
    <p class="move"><button type="button" id="${prefix}before">Back</button>
      <button type="button" id="${prefix}after">Next</button></p>
  </section>
  <footer>People and bank are invented. Effort only compares answers: less is easier.
    <details><summary>How this works</summary><p id="${prefix}about"></p></details></footer>
  <p class="unseen" role="status" aria-live="polite" id="${prefix}said"></p>
</div>`;

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const rounded = (value) => Math.round(1000 * value) / 1000; // as an address holds it
const isFar = (one, other) => Math.abs(one - other) > 1e-6; // standardised
const holds = (answer) => Boolean(answer?.isValid && answer.isPlausible);
const asks = (answer) => Boolean(answer?.acts.some(Boolean));

/* Return words with commas, and "and" before the last. */
const listed = (words) =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

/* Return a probability in percent; only one that is enough is shown as enough. */
function percent(share) {
  if (share < 0.01) return "less than 1 %";
  return share > 0.99 ? "more than 99 %" : `${Math.floor(100 * share)} %`;
}

/* Return how many times one density is another, from the nats between them, 0 or more. */
function times(nats) {
  const ratio = Math.exp(nats);
  if (ratio >= 1e6) return "over a million times";
  if (ratio >= 100) return `${Math.round(ratio).toLocaleString("en")} times`;
  return `${Math.max(ratio, 1.1).toFixed(1)} times`;
}

/* Return an effort, a cost in thousandths. */
const effort = (cost) => (cost < 0.0005 ? "below 1" : `${Math.round(1000 * cost)}`);

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

let nMounted = 0;

/* Put the page into an element of a document, with the contents of model.json.

   With `hasAddress` what a reader says stands in the document's address, so that it can be
   sent; `hash` is what such an address would say. */
export function mount(root, data, { hasAddress = false, hash = "" } = {}) {
  const model = createModel(data);
  const prefix = nMounted > 0 ? `page${nMounted}-` : "";
  nMounted += 1;
  root.classList.add("applicant");
  root.innerHTML = markup(prefix);
  const byId = (id) => root.querySelector(`[id="${prefix}${id}"]`);
  const { features, columns, words } = model;
  const CANT = columns.length + 1;

  const nameOf = (j) => features[j].replace("_", " ");
  const isGroup = (j) => features[j] === "gender";
  /* Return a person as a new object, so that nobody else's is changed. */
  const applicant = (person) => [...model.applicants[person]];
  const start = () => ({
    step: 1,
    person: 0,
    x: applicant(0),
    scores: [...SCORES],
    before: [...BEFORE], // the last answer to each question that was not "can't"
    ways: [...model.directions],
    ends: columns.map(() => null), // the place that nothing may go beyond
    threshold: 0.5,
    pick: "plan0", // whose answer is shown
    tried: columns.map(() => null), // what the reader tries, or null
  });
  let state = start();
  let answers = {}; // by whose they are; undefined: still searching
  let table; // the cheapest on each set of features
  let loose; // the cheapest without limits, where nothing is found within them

  // ---------------------------------------------------------------------------- in words

  /* Return a feature's place among 100 people, before and after, so that a change shows. */
  function placesOf(j, before, after) {
    if (isGroup(j)) {
      return [before, after].map((value) =>
        value > 0 ? "1, earns more" : "0, earns less",
      );
    }
    const both = [before, after].map((value) => model.place(j, value));
    for (let digits = 0; digits < 3; digits++) {
      const [one, other] = both.map((place) => place.toFixed(digits));
      if (one !== other || !isFar(before, after)) return [one, other];
    }
    return [both[0].toFixed(0), after > before ? "a little more" : "a little less"];
  }

  /* Return a feature before and after an answer, on one line. */
  const changeOf = (j, after) => placesOf(j, state.x[j], after).join("\u00a0→\u00a0");

  /* Return what an answer asks for, and what follows from it, in words. */
  function inWords(answer) {
    const isMoved = (j) => isFar(answer.after[j], state.x[j]);
    const direction = (j) => (answer.after[j] > state.x[j] ? 1 : 0);
    const acts = columns.flatMap((j, k) => {
      if (!answer.acts[k]) return [];
      if (!isMoved(j)) {
        // worth saying only where it would follow from something else
        return model.parents[j].some(isMoved) ? [`keep your ${nameOf(j)} as it is`] : [];
      }
      return [`${DEEDS[features[j]][direction(j)]} (${changeOf(j, answer.after[j])})`];
    });
    const follows = columns.flatMap((j, k) => {
      if (answer.acts[k] || !isMoved(j)) return [];
      const verbs = features[j] === "savings" ? ["fall", "rise"] : ["falls", "rises"];
      const change = changeOf(j, answer.after[j]);
      return [`your ${nameOf(j)} ${verbs[direction(j)]} (${change})`];
    });
    return { acts, follows };
  }

  function plausibility(gain) {
    if (gain >= 0.05) return `${times(gain)} as common as you are now`;
    if (gain >= 0) return "as common as you are now";
    return `${times(-gain)} as rare as you are now`;
  }

  /* Return whether an answer is enough, in one sentence. */
  function verdictOf(answer) {
    const much = `Effort ${effort(answer.weightedCost)}.`;
    if (!answer.isValid) {
      return `Still refused, at ${percent(answer.probability)}. ${much}`;
    }
    const seen = `somebody like that is ${plausibility(answer.gain)}`;
    const rest = answer.isPlausible ? seen : `but ${seen}, and must not be rarer`;
    return `Accepted, at ${percent(answer.probability)}; ${rest}. ${much}`;
  }

  // ------------------------------------------------------------------- building the page

  function slider(j, purpose, whenMoved, whenLeft) {
    const input = element("input", { type: "range", id: `${prefix}${purpose}-${j}` });
    const ends = isGroup(j) ? [0, 1, 1] : [1, 99, 0.5];
    ["min", "max", "step"].forEach((name, i) => input.setAttribute(name, ends[i]));
    const value = () => {
      const where = Number(input.value);
      if (!isGroup(j)) return model.valueAt(j, where);
      return where > 0 ? model.high[j] : model.low[j];
    };
    input.addEventListener("input", () => whenMoved(value()));
    if (whenLeft) {
      for (const end of ["pointerup", "keyup"]) {
        input.addEventListener(end, () => whenLeft(Number(input.value)));
      }
    }
    return input;
  }

  /* Set a slider to a value; who stands beyond its ends stands at its end. */
  function put(input, j, value, text) {
    input.value = isGroup(j) ? (value > 0 ? 1 : 0) : model.place(j, value);
    const shown = text ?? placesOf(j, value, value)[0];
    input.setAttribute("aria-valuetext", shown);
    input.closest(".track").querySelector(".value").textContent = shown;
  }

  function track(j, purpose, input) {
    const label = element(
      "label",
      { class: "name", for: `${prefix}${purpose}-${j}` },
      element("b", {}, nameOf(j)),
      " ",
      element("span", { class: "value" }),
    );
    return element("div", { class: "track" }, label, input);
  }

  function radios(name, label, options, whenChosen, kind = "words") {
    const set = element("fieldset", { class: kind, "aria-label": label });
    options.forEach(([value, text, long]) => {
      const input = element("input", { type: "radio", name: prefix + name, value });
      if (long) input.setAttribute("aria-label", long);
      input.addEventListener("change", () => whenChosen(value));
      set.append(element("label", {}, input, element("span", {}, text)));
    });
    return set;
  }

  /* Return the questions about one feature: how hard, which way, and how far. */
  function question(j, k) {
    const name = nameOf(j);
    const end = element("select", {
      id: `${prefix}end-${k}`,
      "aria-label": `How far may your ${name} go?`,
    });
    end.append(element("option", { value: "" }, "no limit"));
    ENDS.forEach((place) =>
      end.append(element("option", { value: place }, `not past ${place}`)),
    );
    end.addEventListener("change", () => {
      state.ends[k] = end.value === "" ? null : Number(end.value);
      changed();
    });
    return element(
      "div",
      { class: "question", id: `${prefix}question-${k}` },
      element("b", { class: "name" }, `${name} `, element("span", { class: "value" })),
      radios(
        `score-${k}`,
        `How hard is it to change your ${name}?`,
        words.map((word, i) => [i + 1, word]),
        (score) => scored(k, score),
      ),
      element("div", { class: "lane", "aria-hidden": true }),
      element(
        "span",
        { class: "limits" },
        radios(
          `way-${k}`,
          `Which way may your ${name} go?`,
          WAYS,
          (way) => {
            state.ways[k] = way;
            if (way === "any") state.ends[k] = null;
            changed();
          },
          "ways",
        ),
        end,
      ),
    );
  }

  function build() {
    features.forEach((_, j) => {
      byId("yourself").append(
        track(
          j,
          "be",
          slider(j, "be", (value) => {
            state.x[j] = rounded(value);
            dropOwn();
            changed();
          }),
        ),
      );
    });
    columns.forEach((j, k) => {
      byId("hard").append(question(j, k));
      const whenLeft = (where) => {
        const today = Math.min(Math.max(model.place(j, state.x[j]), 1), 99);
        if (state.tried[k] !== null && Math.abs(where - today) < 0.3) {
          state.tried[k] = null;
          draw();
          keepAddress();
        }
        byId("said").textContent = spoken();
      };
      const whenMoved = (value) => {
        if (state.pick !== "own") {
          const [, answer] = shown(); // what is tried begins at the answer
          state.tried = columns.map((_, i) => (answer?.acts[i] ? answer.values[i] : null));
        }
        state.tried[k] = rounded(value);
        state.pick = "own";
        draw();
        keepAddress();
      };
      byId("try").append(track(j, "do", slider(j, "do", whenMoved, whenLeft)));
    });
    buildGraph();
    const [least, most] = [1, CANT - 1].map((score) => model.weightsOf([score])[0]);
    byId("about").textContent =
      `Effort: squared changes, added up; what is very hard weighs ${most / least} times ` +
      "what is easy. People are simulated, so that what follows is known; gender 0 earns " +
      "less on average. An answer must not make you rarer than you are now: rare people " +
      "may be impossible ones. A model that learned from many others estimates how common " +
      `somebody is. iCARMA is a small neural network (seed ${model.network.seed}) that ` +
      "answers at once; for many people its answer does not hold.";
  }

  function buildGraph() {
    const graph = byId("graph");
    model.parents.forEach((causes, j) =>
      causes.forEach((i) => {
        const [[x1, y1], [x2, y2]] = [PLACES[i], PLACES[j]];
        const length = Math.hypot(x2 - x1, y2 - y1);
        const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
        const ends = {
          x1: x1 + (RADIUS + 2) * dx,
          y1: y1 + (RADIUS + 2) * dy,
          x2: x2 - (RADIUS + 8) * dx,
          y2: y2 - (RADIUS + 8) * dy,
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
      node.append(svg("circle", { cx, cy, r: RADIUS }));
      const lines = nameOf(j).split(" ");
      lines.forEach((line, i) => {
        const y = cy + 5 + 15 * (i - (lines.length - 1) / 2);
        node.append(svg("text", { class: "label", x: cx, y }, line));
      });
      const y = cy + (cy < 120 ? -RADIUS - 6 : RADIUS + 17); // where no arrow arrives
      node.append(svg("text", { class: "moved", x: cx, y }, ""));
      graph.append(node);
    });
  }

  // ------------------------------------------------------------------ what a reader does

  function scored(k, score) {
    state.scores[k] = score;
    if (score === CANT) state.tried[k] = null;
    else state.before[k] = score;
    changed();
  }

  /* Take back what the reader tries. */
  function dropOwn() {
    state.tried = columns.map(() => null);
    if (state.pick === "own") state.pick = "plan0";
  }

  function become(person) {
    state.person = (person + model.applicants.length) % model.applicants.length;
    state.x = applicant(state.person);
    dropOwn();
    changed();
  }

  function goTo(step, isFocused = true) {
    state.step = Math.min(Math.max(step, 1), STEPS.length);
    draw();
    keepAddress();
    if (isFocused) {
      root.querySelector(`.step[data-step="${state.step}"] h2`).focus({ preventScroll: true });
    }
  }

  byId("next").addEventListener("click", () => become(state.person + 1));
  byId("previous").addEventListener("click", () => become(state.person - 1));
  byId("back").addEventListener("click", () => {
    state = start();
    changed();
  });
  byId("threshold").addEventListener("change", (event) => {
    state.threshold = Number(event.target.value);
    changed();
  });
  byId("untry").addEventListener("click", () => {
    dropOwn();
    draw();
    keepAddress();
  });
  byId("before").addEventListener("click", () => goTo(state.step - 1));
  byId("after").addEventListener("click", () => goTo(state.step + 1));
  root.querySelectorAll("[data-to]").forEach((button) =>
    button.addEventListener("click", () => goTo(Number(button.dataset.to), false)),
  );

  // ------------------------------------------------------------------------- the address

  /* Write what differs from the start into the address. */
  function keepAddress() {
    if (!hasAddress) return;
    const first = start();
    const query = new URLSearchParams();
    const keep = (name, now, then) => now !== then && query.set(name, now);
    keep("step", `${state.step}`, "1");
    keep("person", `${state.person + 1}`, "1");
    keep("hard", state.scores.join("."), first.scores.join("."));
    keep("ways", state.ways.join("."), first.ways.join("."));
    keep("ends", state.ends.map((end) => end ?? "any").join("."), "any.any.any.any");
    keep("from", `${state.threshold}`, "0.5");
    keep("answer", state.pick, "plan0");
    const tried = (value, k) => (value === null ? [] : [`${k}_${Math.round(1000 * value)}`]);
    if (state.pick === "own") keep("try", state.tried.flatMap(tried).join("."), "");
    const factual = model.applicants[state.person];
    const others = state.x.flatMap((value, j) =>
      value === factual[j] ? [] : [`${j}_${Math.round(1000 * value)}`],
    );
    keep("x", others.join("."), "");
    const address = query.toString();
    history.replaceState(null, "", address ? `#${address}` : location.pathname);
  }

  /* Take what an address says; what can't be read is left as it is at the start. */
  function read(address) {
    const query = new URLSearchParams(address);
    const number = (name, known) => {
      const value = Number(query.get(name));
      return query.has(name) && known(value) ? value : null;
    };
    const list = (name, length, known) => {
      const fields = (query.get(name) ?? "").split(".");
      return fields.length === length && fields.every(known) ? fields : null;
    };
    const isPlace = (least, most) => (value) =>
      Number.isInteger(value) && value >= least && value <= most;
    state.step = number("step", isPlace(1, STEPS.length)) ?? 1;
    state.person = (number("person", isPlace(1, model.applicants.length)) ?? 1) - 1;
    state.threshold = number("from", (share) => THRESHOLDS.includes(share)) ?? 0.5;
    if (Object.hasOwn(WHOSE, query.get("answer"))) state.pick = query.get("answer");
    const n = columns.length;
    const scores = list("hard", n, (score) => isPlace(1, CANT)(Number(score)));
    if (scores) state.scores = scores.map(Number);
    state.scores.forEach((score, k) => {
      if (score !== CANT) state.before[k] = score;
    });
    const isWay = (value) => WAYS.some(([way]) => way === value);
    state.ways = list("ways", n, isWay) ?? state.ways;
    const ends = list("ends", n, (end) => end === "any" || ENDS.includes(Number(end)));
    if (ends) state.ends = ends.map((end) => (end === "any" ? null : Number(end)));
    state.x = applicant(state.person);
    const numbers = (name) =>
      (query.get(name) ?? "").split(".").flatMap((field) => {
        const [, place, value] = /^(\d)_(-?\d{1,5})$/.exec(field) ?? [];
        return place === undefined ? [] : [[Number(place), Number(value) / 1000]];
      });
    const { low, high } = model;
    for (const [j, value] of numbers("x")) {
      if (j >= features.length) continue;
      const within = Math.min(Math.max(value, low[j]), high[j]);
      state.x[j] = isGroup(j) ? (within > 0 ? high[j] : low[j]) : within;
    }
    for (const [k, value] of numbers("try")) {
      if (k >= columns.length || state.scores[k] === CANT) continue;
      const j = columns[k];
      state.tried[k] = Math.min(Math.max(value, low[j]), high[j]);
    }
  }

  // --------------------------------------------------------------- computing and drawing

  /* Return to what values the person may set features, as the model asks it. */
  const interval = (scores = state.scores) =>
    model.intervalOf(
      state.x,
      scores,
      columns.map((j, k) => {
        const [way, place] = [state.ways[k], state.ends[k]];
        const end = place === null ? undefined : model.valueAt(j, place);
        return {
          fall: way !== "up",
          rise: way !== "down",
          low: way === "down" ? end : undefined,
          high: way === "up" ? end : undefined,
        };
      }),
    );

  const judged = (action) =>
    action &&
    model.outcome(
      model.truth,
      state.x,
      action.acts,
      action.values,
      model.weightsOf(state.scores),
    );

  const isRefused = () => model.logOdds(state.x) < 0;
  let current = 0; // which search is the newest

  /* Draw at once what is known at once; the searches follow when the reader pauses. */
  function changed() {
    current += 1;
    model.acceptFrom(state.threshold);
    answers = {};
    [table, loose] = [undefined, undefined];
    if (isRefused()) {
      const { x, scores } = state;
      answers.printed = judged(model.recommended(x, scores));
      const within = model.recommended(x, scores, interval());
      answers.instant = judged(model.pruned(model.truth, x, scores, within));
    }
    draw();
    const mine = current;
    root.dataset.settled = "no";
    setTimeout(() => mine === current && search(mine), 60);
  }

  /* Search piece by piece, so that the page answers meanwhile. */
  function search(mine) {
    const begun = performance.now();
    const pieces = isRefused() ? searching() : [].values();
    const go = () => {
      if (mine !== current) return;
      const since = performance.now();
      let piece = pieces.next();
      while (!piece.done && performance.now() - since < AT_ONCE) piece = pieces.next();
      if (!piece.done) {
        setTimeout(go);
        return;
      }
      root.dataset.searched = performance.now() - begun; // milliseconds
      root.dataset.settled = "yes";
      draw();
      byId("said").textContent = spoken();
      keepAddress();
    };
    go();
  }

  function* searching() {
    const { x, scores } = state;
    const weights = model.weightsOf(state.before); // what is closed has a price, too
    const [open, limits] = [interval(state.before), interval()];
    const rows = [];
    for (const row of model.searching(model.truth, x, weights, open)) {
      rows.push(row);
      yield;
    }
    const kept = model.plans(rows, limits.may, N_PLANS);
    kept.forEach((plan, i) => (answers[`plan${i}`] = judged(plan)));
    for (let i = kept.length; i < N_PLANS; i++) answers[`plan${i}`] = null;
    yield;
    answers.grid = judged(model.exact(model.truth, x, scores, limits));
    table = rows;
    if (kept.length || model.cheapest(rows, limits.may.map(() => true))) return;
    const free = [];
    for (const row of model.searching(model.truth, x, weights)) {
      free.push(row);
      yield;
    }
    loose = model.cheapest(free, model.mayActOn(scores));
  }

  /* Return whose answer is shown, and the answer: what was picked; while the search is at
     work, iCARMA's. */
  function shown() {
    if (!isRefused() || state.step === 1) return [null, null];
    if (state.pick === "own" && state.step !== 2) {
      const acts = state.tried.map((value) => value !== null);
      return ["own", judged({ acts, values: state.tried })];
    }
    const pick = state.pick === "own" ? "plan0" : state.pick;
    if (pick === "plan0" && answers.plan0 === undefined) return ["instant", answers.instant];
    if (answers[pick] === null && pick.startsWith("plan")) return ["plan0", answers.plan0];
    return [pick, answers[pick]];
  }

  function draw() {
    const [whose, answer] = shown();
    root.dataset.step = state.step;
    root.querySelectorAll(".step").forEach((section) => {
      section.hidden = Number(section.dataset.step) !== state.step;
    });
    root.querySelectorAll("[data-to]").forEach((tab) => {
      if (Number(tab.dataset.to) === state.step) tab.setAttribute("aria-current", "step");
      else tab.removeAttribute("aria-current");
    });
    byId("before").disabled = state.step === 1;
    byId("after").disabled = state.step === STEPS.length;
    const isOther = state.x.some((value, j) => value !== model.applicants[state.person][j]);
    byId("who").textContent =
      `applicant ${state.person + 1} of ${model.applicants.length}` +
      (isOther ? ", changed" : "");
    byId("threshold").value = state.threshold;
    drawOutcome(whose, answer);
    drawGraph(answer);
    const drawStep = [drawYourself, drawHard, drawAnswers, drawFollows, drawUnlock];
    drawStep[state.step - 1](whose, answer);
  }

  function pill(isYes, isPlausible = true) {
    const kind = !isYes ? "no" : isPlausible ? "yes" : "but";
    const text = { no: "refused", yes: "accepted", but: "accepted, but too rare" }[kind];
    return element("span", { class: `pill ${kind}` }, text);
  }

  /* Return what the reader is told in one sentence, and by whom. */
  function headline(whose, answer) {
    if (!isRefused()) return "The bank accepts you as you are. There is nothing to do.";
    if (!whose) {
      return (
        "An invented person asked an invented bank for a loan. Say what is hard for you, " +
        "and see what you could do."
      );
    }
    if (!model.mayActOn(state.scores).some(Boolean)) {
      return "You say that you can change nothing, so nothing can be recommended.";
    }
    if (whose !== "own" && answer === undefined) return "Searching …";
    if (!asks(answer)) return nothing(whose);
    const { acts, follows } = inWords(answer);
    const isGood = holds(answer) && !oddOf(whose, answer);
    const lead = isGood || whose === "own" ? "" : "It proposes: ";
    const then = follows.length ? ` Then ${listed(follows)}.` : "";
    return `${lead}${lead ? listed(acts) : capital(listed(acts))}.${then}`;
  }

  /* Return what is said of somebody who does not answer. */
  function nothing(whose) {
    if (whose === "own") return "You try nothing yet: move a dot.";
    if (whose === "plan1" || whose === "plan2") return "There is no other way.";
    if (whose === "instant" || whose === "printed") return "It recommends nothing.";
    return "It finds nothing that is both enough and plausible.";
  }

  function drawOutcome(whose, answer) {
    const span = (text) => element("span", {}, text);
    const children = [pill(!isRefused()), span(percent(model.probability(state.x)))];
    if (asks(answer)) {
      children.push(span("→"), pill(answer.isValid, answer.isPlausible));
      children.push(span(percent(answer.probability)));
    }
    if (whose) children.push(element("span", { class: "small" }, WHOSE[whose]));
    byId("decision").replaceChildren(...children);
    byId("whose").textContent = asks(answer) ? `${WHOSE[whose]}: ${WHAT[whose]}.` : "";
    byId("headline").textContent = headline(whose, answer);
    byId("enough").textContent = asks(answer) ? verdictOf(answer) : "";
    const odd = oddOf(whose, answer);
    if (odd) byId("enough").append(" ", element("span", { class: "odd" }, odd));
  }

  /* Return what a screen reader announces when all is known. */
  function spoken() {
    const [whose, answer] = shown();
    const by = whose ? `${WHOSE[whose]}: ` : "";
    const verdict = asks(answer) ? ` ${verdictOf(answer)}` : "";
    return `${by}${headline(whose, answer)}${verdict}`;
  }

  function drawYourself() {
    features.forEach((_, j) => put(byId(`be-${j}`), j, state.x[j]));
    const [isNo, least] = [isRefused(), percent(state.threshold)];
    byId("verdict").textContent = isNo ? "refused" : "accepted";
    const rated = percent(model.probability(state.x));
    const rating = `The bank's computer rates you at ${rated}`;
    byId("rated").textContent = isNo
      ? `${rating}, and says yes from ${least} on. Next, say what is hard for you.`
      : `${rating}, and says yes from ${least} on. Move a dot, and see when it would not.`;
  }

  function drawHard(_, answer) {
    const limits = interval();
    columns.forEach((j, k) => {
      const box = byId(`question-${k}`);
      const isClosed = state.scores[k] === CANT;
      const chosen = (name, value) =>
        box.querySelector(`[name="${prefix}${name}-${k}"][value="${value}"]`);
      chosen("score", state.scores[k]).checked = true;
      chosen("way", state.ways[k]).checked = true;
      box.querySelectorAll(".ways input").forEach((input) => (input.disabled = isClosed));
      const end = byId(`end-${k}`);
      end.value = state.ends[k] ?? "";
      end.disabled = isClosed || state.ways[k] === "any";
      const isShut = !isClosed && !limits.may[k]; // by a limit that is passed already
      const place = placesOf(j, state.x[j], state.x[j])[0];
      box.querySelector(".value").textContent = isShut
        ? `${place}, beyond that limit`
        : place;
      drawLane(box.querySelector(".lane"), j, k, answer);
    });
  }

  /* Draw where somebody stands on one feature, and where an answer moves it. */
  function drawLane(lane, j, k, answer) {
    const share = (value) => (Math.min(Math.max(model.place(j, value), 1), 99) - 1) / 98;
    const at = (p) => `calc(${THUMB / 2}px + ${p} * (100% - ${THUMB}px))`;
    const from = share(state.x[j]);
    const dot = element("span", { class: "dot" });
    dot.style.left = at(from);
    lane.replaceChildren(element("span", { class: "rail" }), dot);
    if (!answer || !isFar(answer.after[j], state.x[j])) return;
    const to = share(answer.after[j]);
    const isLeft = answer.after[j] < state.x[j];
    const follows = !answer.acts[k];
    const kind = follows ? " follows" : "";
    const stem = element("span", { class: `stem${kind}` });
    stem.style.left = at(Math.min(from, to));
    stem.style.width = `calc(${Math.abs(to - from)} * (100% - ${THUMB}px))`;
    const tip = element("span", { class: `tip${isLeft ? " left" : ""}${kind}` });
    tip.style.left = at(to);
    const isBefore = isLeft ? to > 0.2 : to > 0.8; // beside the tip, where there is space
    const place = placesOf(j, state.x[j], answer.after[j])[1];
    const text = element(
      "span",
      { class: `text${isBefore ? " before" : ""}${kind}` },
      `${place}${follows ? " follows" : ""}`,
    );
    text.style.left = at(to);
    lane.append(stem, tip, text);
  }

  function drawAnswers(whose) {
    const box = byId("answers");
    const listedHere = isRefused() ? Object.keys(WHOSE).filter(isListed) : [];
    const hadFocus = box.contains(root.getRootNode().activeElement);
    box.replaceChildren(...listedHere.map((name) => card(name, name === whose)));
    if (hadFocus) box.querySelector("input:checked")?.focus();
    if (!listedHere.length) {
      box.append(element("p", {}, headline(null, null)));
    }
  }

  /* Second and third ways are listed where there are some, and what is tried. */
  const isListed = (whose) =>
    whose === "own"
      ? state.pick === "own"
      : Boolean(answers[whose]) || !(whose === "plan1" || whose === "plan2");

  function card(whose, isShown) {
    const answer = whose === "own" ? shown()[1] : answers[whose];
    const input = element("input", {
      type: "radio",
      name: `${prefix}answer`,
      value: whose,
    });
    input.checked = isShown;
    input.addEventListener("change", () => {
      state.pick = whose;
      draw();
      byId("said").textContent = spoken();
      keepAddress();
    });
    const text = element("span", { class: "card", title: WHAT[whose] });
    const brief = element("span", { class: "brief" }, element("b", {}, WHOSE[whose]));
    text.append(brief, element("span", { class: "do" }, headline(whose, answer)));
    if (asks(answer)) {
      const kind = holds(answer) ? "" : answer.isValid ? "too rare, " : "refused, ";
      brief.append(element("span", {}, `${kind}effort ${effort(answer.weightedCost)}`));
      const odd = oddOf(whose, answer);
      if (odd) text.append(element("span", { class: "odd" }, odd));
    } else if (answer !== undefined) brief.append(element("span", {}, "no answer"));
    return element("label", { class: `answer ${whose}` }, input, text);
  }

  /* Return what an answer asks for against a person's directions and limits, as a
     sentence; only iCARMA as printed does, and who tries it. */
  function oddOf(whose, answer) {
    if (!(whose === "printed" || whose === "own") || !asks(answer)) return "";
    const { low, high } = interval();
    const odd = columns.flatMap((j, k) => {
      const value = answer.values[k];
      if (!answer.acts[k] || (value > low[k] - 1e-6 && value < high[k] + 1e-6)) return [];
      return [DEEDS[features[j]][value > state.x[j] ? 1 : 0]];
    });
    return odd.length ? `Against what you said: ${listed(odd)}.` : "";
  }

  function drawFollows(whose, answer) {
    const lines = [];
    if (!asks(answer)) lines.push(headline(whose, answer));
    else {
      lines.push(...causes(answer), ...reasons(whose, answer));
    }
    byId("follows").replaceChildren(...lines.map((line) => element("p", {}, line)));
    columns.forEach((j, k) => {
      const input = byId(`do-${j}`);
      const after = answer?.after[j] ?? state.x[j];
      const isMoved = isFar(after, state.x[j]);
      put(input, j, after, isMoved ? changeOf(j, after) : undefined);
      input.disabled = !isRefused() || state.scores[k] === CANT;
    });
    byId("untry").hidden = whose !== "own";
  }

  /* Return for each feature that follows what it follows from. */
  function causes(answer) {
    const isMoved = (j) => isFar(answer.after[j], state.x[j]);
    const lines = columns.flatMap((j, k) => {
      if (answer.acts[k] || !isMoved(j)) return [];
      const from = model.parents[j].filter(isMoved).map((i) => `your ${nameOf(i)}`);
      const change = `${capital(nameOf(j))} ${changeOf(j, answer.after[j])}`;
      const closed = state.scores[k] === CANT ? ", though you can't change it yourself" : "";
      return [`${change} follows from ${listed(from)}${closed}.`];
    });
    return lines.length ? lines : ["Nothing else follows from this one."];
  }

  /* Return for each feature of an answer what it would be without: what is left of the
     answer, and the least effort that the search found elsewhere. */
  function reasons(whose, answer) {
    return columns.flatMap((j, k) => {
      if (!answer.acts[k] || !isFar(answer.values[k], state.x[j])) return [];
      const acts = answer.acts.map((isActed, i) => isActed && i !== k);
      const left = judged({ acts, values: answer.values });
      const deed = DEEDS[features[j]][answer.values[k] > state.x[j] ? 1 : 0];
      const becomes = !left.isValid
        ? `you are refused, at ${percent(left.probability)}`
        : left.isPlausible
          ? "the rest is enough"
          : "the rest makes you too rare";
      return [`If you don't ${deed}, ${becomes}.${elsewhere(whose, answer, k)}`];
    });
  }

  /* Return what the search finds without acting on one feature, as a sentence. */
  function elsewhere(whose, answer, k) {
    if (!table || whose === "own") return "";
    const row = model.cheapest(
      table,
      interval().may.map((isOpen, i) => isOpen && i !== k),
    );
    if (!row) return " Without it, nothing was found.";
    const than = effort(answer.weightedCost);
    return ` The best way without it has effort ${effort(row.cost)}; this one ${than}.`;
  }

  function drawGraph(answer) {
    const isActed = (j) => Boolean(answer?.acts[columns.indexOf(j)]);
    const isMoved = (j) => Boolean(answer) && isFar(answer.after[j], state.x[j]);
    const changes = [];
    features.forEach((_, j) => {
      const k = columns.indexOf(j);
      const node = byId(`node-${j}`);
      const isClosed = k >= 0 && state.scores[k] === CANT;
      const follows = isMoved(j) && !isActed(j);
      const kind = isActed(j) ? "acted" : follows ? "follows" : "";
      node.setAttribute("class", `${kind}${isClosed ? " closed" : ""}`);
      const change = isMoved(j) ? changeOf(j, answer.after[j]) : "";
      node.querySelector(".moved").textContent = change;
      if (change) changes.push(`${nameOf(j)} ${follows ? "follows" : "is set"}, ${change}`);
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
      `Causal graph of the features. ${changes.join("; ") || "Nothing moves"}.`,
    );
  }

  // --------------------------------------------------------------------------- unlocking

  function drawUnlock() {
    const box = byId("unlock");
    const hadFocus = box.contains(root.getRootNode().activeElement);
    const blocks = unlocking();
    box.replaceChildren(...blocks);
    if (hadFocus) (box.querySelector("button") ?? byId("before")).focus();
  }

  function unlocking() {
    const text = (content) => element("p", {}, content);
    if (!isRefused()) return [text("You are accepted: nothing is locked.")];
    if (!table) return [text("Searching …")];
    const { may } = interval();
    const now = model.cheapest(table, may);
    const isClosed = (k) => state.scores[k] === CANT;
    if (now) {
      const prices = model.unlockedBy(table, may);
      const cheaper = columns
        .map((_, k) => ({ opened: [k], cost: prices[k] }))
        .filter(({ opened, cost }) => isClosed(opened[0]) && cost < 0.98 * now.cost);
      const open = columns.map((_, k) => k).filter((k) => may[k]);
      const summary = `There is a way, of effort ${effort(now.cost)}.`;
      const easier = cheaper.length
        ? " It would be easier if you say:"
        : open.length < columns.length
          ? " Taking back a \"can't\" would not make it easier."
          : "";
      return [text(summary + easier), ...cheaper.map(key)].concat(
        text("When does it become a no? Close one more, and see:"),
        open.map(lock),
      );
    }
    const prices = model.unlockedBy(table, may);
    const ways = columns
      .map((_, k) => ({ opened: [k], cost: prices[k] }))
      .filter(({ opened, cost }) => isClosed(opened[0]) && cost < Infinity);
    const more = model.keyOf(table, may);
    if (!ways.length && more) {
      const opened = columns.map((_, k) => k).filter((k) => more.more[k]);
      if (opened.every(isClosed)) ways.push({ opened, cost: more.cost });
    }
    const blocks = [text(`No answer. ${blocked(may)}`)];
    if (ways.length) blocks.push(text("There is one if you say:"), ...ways.map(key));
    if (loose) blocks.push(text("There is one if you allow:"), release());
    if (blocks.length === 1) {
      const none = may.every(Boolean) ? "" : " Taking back a \"can't\" would not help.";
      blocks[0].textContent += `${none} The next applicant (▶) may have a way.`;
    }
    return blocks;
  }

  /* Return a button that closes a feature. */
  function lock(k) {
    const label = `I can't change my ${nameOf(columns[k])}`;
    const button = element("button", { type: "button" }, label);
    button.addEventListener("click", () => scored(k, CANT));
    return button;
  }

  /* Return a button that opens closed features, as hard as they were before. */
  function key({ opened, cost }) {
    const names = opened.map((k) => `I can change my ${nameOf(columns[k])} after all`);
    const label = `${names.join(", and ")} (effort ${effort(cost)})`;
    const button = element("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      opened.forEach((k) => (state.scores[k] = state.before[k]));
      state.pick = "plan0";
      changed();
    });
    return button;
  }

  /* Return a button that takes directions and limits back. */
  function release() {
    const label = `every direction, as far as people go (effort ${effort(loose.cost)})`;
    const button = element("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      state.ways = columns.map(() => "any");
      state.ends = columns.map(() => null);
      state.pick = "plan0";
      changed();
    });
    return button;
  }

  /* Return what blocks somebody who has no answer in the table. */
  function blocked(may) {
    const open = table.filter((row) => row.acts.every((isActed, k) => !isActed || may[k]));
    const lost = Math.max(-Math.max(...open.map((row) => row.gain)), 0); // nats
    if (!may.some(Boolean)) return "You closed everything.";
    if (lost === Infinity) return "The bank accepted nothing of all that was tried.";
    const close = lost < 0.05 ? " Very little is missing." : "";
    return (
      "Every change that the bank would accept makes you somebody who is seen less often " +
      `than you are now (${times(lost)}, or more), and such advice is not to be trusted.` +
      close
    );
  }

  build();
  if (hasAddress) {
    addEventListener("hashchange", () => {
      state = start();
      read(location.hash.slice(1));
      changed();
    });
  }
  read(hasAddress ? location.hash.slice(1) : hash);
  changed();
}
