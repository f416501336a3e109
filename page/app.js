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
const RADIUS = 38;
// what lowering and raising a feature is called, and what happens where it follows
const DEEDS = {
  loan_amount: ["ask for a smaller loan", "ask for a larger loan"],
  loan_duration: ["pay it back sooner", "take longer to pay it back"],
  income: ["earn less", "earn more"],
  savings: ["save less", "save more"],
};
// what a place among 100 people says of a feature
const COMPARED = {
  age: "older than",
  education: "more than",
  loan_amount: "larger than",
  loan_duration: "longer than",
  income: "more than",
  savings: "more than",
};
const WHOSE = {
  plan0: "Easiest way found",
  plan1: "A second way",
  plan2: "A third way",
  instant: "iCARMA network, adjusted",
  printed: "iCARMA network, unadjusted",
  grid: "Easiest in coarse steps",
  own: "What you try",
};
const WHAT = {
  plan0: "no less effort was found",
  plan1: "spares something that the first asks for",
  plan2: "spares something that each of the others asks for",
  instant: "moved within your limits, without what it does not need; may still fail",
  printed: "a trained network's answer, used as in the paper; not told limits, may fail",
  grid: "the least effort of 25 values of each feature, all tried",
  own: "your own dots in step 4",
};
// what an answer that stays the same still is
const STILL = {
  plan1: "the second way",
  plan2: "the third way",
  grid: "the least effort of the steps tried",
};
const COUNTED = ["plan0", "instant", "printed", "grid"]; // over all applicants
const N_PLANS = 3;
// directions, as they stand beside each other: said, shown, and read aloud
const WAYS = [
  ["down", "↓", "only down"],
  ["any", "↕", "up or down"],
  ["up", "↑", "only up"],
];
const ENDS = [5, 10, 25, 50, 75, 90, 95]; // places that a person may not want to pass
const THRESHOLDS = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
const PAUSE = 60; // milliseconds without a change before the search begins
const AT_ONCE = 12; // milliseconds of searching before the page is free again
const SLIGHT = Math.log(1.1); // nats: less common by less than that is "slightly rarer"
const THUMB = 1.125; // rem, as in style.css
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
      <button type="button" id="${prefix}link">Copy link</button>
    </div>
  </header>
  <nav class="steps" aria-label="Steps">${STEPS.map(
    (title, i) =>
      `<button type="button" data-to="${i + 1}" aria-label="${i + 1} ${title}"><b>${i + 1}</b>
        <span>${title}</span></button>`,
  ).join("")}</nav>
  <section class="outcome" aria-label="What comes of it">
    <div class="decision" id="${prefix}decision"></div>
    <p id="${prefix}whose" class="small"></p>
    <p id="${prefix}headline"></p>
    <p id="${prefix}why" class="why"></p>
    <p id="${prefix}enough" class="small"></p>
  </section>
  <section class="picture" aria-label="The causal graph">
    <svg class="graph" id="${prefix}graph" viewBox="-8 -6 468 318" font-size="14" role="img"></svg>
    <p class="hint">An arrow: the first changes the second. <span>Blue, thick ring: you set it.
      Yellow, dashed arrow: it follows. Dashed circle: can't. Dotted arrow: does not count,
      since you set what it points to. Numbers: places among 100 people.</span></p>
  </section>
  <section class="panel">
    <div class="step" data-step="1">
      <h2 tabindex="-1">You are <span id="${prefix}verdict"></span></h2>
      <p id="${prefix}rated"></p>
      <p class="hint">A number is a percentile, a place among 100 people; there are no euros
        or years in these data. Move a dot to be somebody else.</p>
      <div id="${prefix}yourself" class="tracks"></div>
      <p class="hint"><label>The bank says yes from a rating of
        <select id="${prefix}threshold">${THRESHOLDS.map(
          (share) => `<option value="${share}">${Math.round(100 * share)} %</option>`,
        ).join("")}</select></label></p>
    </div>
    <div class="step" data-step="2">
      <h2 tabindex="-1">What is hard for you?</h2>
      <p class="hint">An example is filled in: change it. May each fall (↓), rise (↑), or
        both, and how far (in places among 100 people)? No answer may make you somebody
        rarer: very unusual people may not exist.</p>
      <div id="${prefix}hard"></div>
    </div>
    <div class="step" data-step="3">
      <h2 tabindex="-1">What you could do</h2>
      <p class="hint">Ways come from a search. iCARMA, the paper's method, answers at once, often
        at more effort, and for four in ten applicants its answer does not hold.</p>
      <fieldset id="${prefix}answers" aria-label="Who answers"></fieldset>
      <details id="${prefix}all" class="hint"><summary>How often does each answer hold, for
        all applicants?</summary><div id="${prefix}shares"></div></details>
    </div>
    <div class="step" data-step="4">
      <h2 tabindex="-1">What follows, and why</h2>
      <p class="hint">Try it yourself: move a dot, and what follows moves with it. Put it
        back, and you need not do it.</p>
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
  <footer>People and bank are invented. Effort only compares answers: less is easier. Part
    of an independent companion to Budde et al.,
    <a href="https://arxiv.org/abs/2604.08030">From Universal to Individualized
    Actionability</a> (FAccT 2026).
    <details><summary>How this works</summary><p id="${prefix}about"></p></details></footer>
  <p class="unseen" role="status" aria-live="polite" id="${prefix}said"></p>
</div>`;

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const rounded = (value) => Math.round(1000 * value) / 1000; // as an address holds it
const isFar = (one, other) => Math.abs(one - other) > 1e-6; // standardised
const holds = (answer) => Boolean(answer?.isValid && answer.isPlausible);
const average = (some) => some.reduce((total, value) => total + value, 0) / some.length;
const asks = (answer) => Boolean(answer?.acts.some(Boolean));

/* Return words with commas, and "and" before the last. */
const listed = (words) =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

/* Return a probability in percent; only one that is enough is shown as enough. */
function percent(share) {
  if (share < 0.01) return "less than 1 %";
  return share > 0.99 ? "more than 99 %" : `${Math.floor(100 * share)} %`;
}

/* Return how many times one density is another, from the nats between them, `SLIGHT` or more. */
function times(nats) {
  const ratio = Math.exp(nats);
  if (ratio >= 1e6) return "over a million times";
  if (ratio >= 100) return `${Math.round(ratio).toLocaleString("en")} times`;
  return `${(Math.floor(10 * ratio) / 10).toFixed(1)} times`; // or more
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
  let state = start(); // what the reader says
  /* What is shown: what the reader said when the last search began, and what came of it. It
     stays until the next search has ended. */
  let known = { ...structuredClone(state), isRefused: false, answers: {}, why: "" };

  // ---------------------------------------------------------------------------- in words

  /* Return a feature's place among 100 people, before and after, so that a change shows. */
  function placesOf(j, before, after) {
    if (isGroup(j)) return [before, after].map((value) => (value > 0 ? "man" : "woman"));
    const both = [before, after].map((value) => model.place(j, value));
    for (let digits = 0; digits < 3; digits++) {
      const [one, other] = both.map((place) => place.toFixed(digits));
      if (one !== other || !isFar(before, after)) return [one, other];
    }
    return [both[0].toFixed(0), after > before ? "a little more" : "a little less"];
  }

  /* Return where a value stands, in words. */
  function standing(j, value) {
    const [place] = placesOf(j, value, value);
    return isGroup(j) ? place : `${COMPARED[features[j]]} ${place} of 100`;
  }

  /* Return a feature before and after an answer, on one line. */
  const changeOf = (j, after) => placesOf(j, known.x[j], after).join("\u00a0→\u00a0");
  const changeOf100 = (j, after) => `${changeOf(j, after)}\u00a0of\u00a0100`;

  /* Return what an answer asks for, and what follows from it, in words. */
  function inWords(answer) {
    const isMoved = (j) => isFar(answer.after[j], known.x[j]);
    const direction = (j) => (answer.after[j] > known.x[j] ? 1 : 0);
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
    if (gain >= SLIGHT) return `${times(gain)} as common as you are now`;
    if (gain >= 0) return "as common as you are now";
    return `${gain > -SLIGHT ? "slightly rarer than" : `${times(-gain)} as rare as`} you are now`;
  }

  /* Return whether an answer is enough, in one sentence. */
  function verdictOf(answer) {
    const much = `Effort ${effort(answer.cost)}.`;
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
    const shown = text ?? standing(j, value);
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
      changed(k);
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
            changed(k);
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
        const today = Math.min(Math.max(model.place(j, known.x[j]), 1), 99);
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
      "Effort: thousandths of a mean over the four questions, of squared changes, each over " +
      `its range; what is very hard weighs ${most / least} times what is easy. People are ` +
      "simulated, so that what follows is known; women earn less on average. The bank is a " +
      "small network that learned from 20,000 others who pays back. An answer must not make " +
      "you rarer than you are now: rare people may be impossible ones. A model that learned " +
      "from 25,000 others estimates how common somebody is. Searches ask for just enough, " +
      "with nothing to spare. iCARMA is a small neural network, trained for this companion " +
      `(the best of ten for other people, seed ${model.network.seed}) that answers at once. ` +
      "Applicant 1 was chosen as an example, the others were not.";
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
    changed(k);
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
    known.why = "";
    draw();
    keepAddress("pushState"); // so that the browser's Back goes back a step
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
  byId("link").hidden = !hasAddress;
  byId("link").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      byId("link").textContent = "Link copied";
      byId("said").textContent = "Link copied";
      setTimeout(() => (byId("link").textContent = "Copy link"), 2000);
    } catch {
      prompt("A link to what you see:", location.href);
    }
  });
  byId("all").addEventListener("toggle", count);
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
  function keepAddress(how = "replaceState") {
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
    const place = address ? `#${address}` : location.pathname;
    if (location.hash !== (address && place) || !history.state) {
      history[how]({ step: state.step }, "", place);
    }
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

  /* Return to what values a person may set features, of what a reader says. */
  const interval = ({ x, ways, ends }, scores) =>
    model.intervalOf(
      x,
      scores,
      columns.map((j, k) => {
        const [way, place] = [ways[k], ends[k]];
        const end = place === null ? undefined : model.valueAt(j, place);
        return {
          fall: way !== "up",
          rise: way !== "down",
          low: way === "down" ? end : undefined,
          high: way === "up" ? end : undefined,
        };
      }),
    );
  const limitsOf = (said) => interval(said, said.scores);

  const judged = (action, { x, scores } = known) =>
    action && model.outcome(x, action.acts, action.values, model.weightsOf(scores));

  let current = 0; // which search is the newest

  /* Draw at once what the reader says; the answers follow when the reader pauses.

     Which feature's answer was changed is kept, for a sentence if that changes nothing. */
  function changed(feature = null) {
    current += 1;
    model.acceptFrom(state.threshold);
    drawSaid();
    root.dataset.settled = "no";
    const mine = current;
    setTimeout(() => mine === current && search(mine, feature), PAUSE);
  }

  /* Take what a generator does piece by piece, so that the page answers meanwhile; give up
     where somebody is not interested any more. */
  function inPieces(pieces, isWanted, whenDone, meanwhile = () => {}) {
    const go = () => {
      if (!isWanted()) return;
      const since = performance.now();
      let piece = pieces.next();
      while (!piece.done && performance.now() - since < AT_ONCE) piece = pieces.next();
      if (piece.done) whenDone(piece.value);
      else {
        meanwhile(piece.value);
        setTimeout(go);
      }
    };
    go();
  }

  function search(mine, feature) {
    const begun = performance.now();
    const said = structuredClone(state);
    const done = (next) => {
      root.dataset.searched = performance.now() - begun; // milliseconds
      root.dataset.settled = "yes";
      const [last, before] = [known, headline(...shown())];
      known = { ...next, why: "" };
      const [whose, answer] = shown();
      if (feature !== null && headline(whose, answer) === before) {
        known.why = whyTheSame(feature, last, whose, answer);
      }
      draw();
      byId("said").textContent = spoken();
      keepAddress();
      count();
    };
    inPieces(searching(said), () => mine === current, done);
  }

  /* Return, with pauses, what comes of what a reader says: `table`, the cheapest action on
     each set of features, and `loose`, where nothing is found within limits: the cheapest
     without them, on closed features only if need be. */
  function* searching(said) {
    const isRefused = model.logOdds(said.x) < 0;
    if (!isRefused) return { ...said, isRefused, answers: {} };
    // what is closed has a price, too
    const { answers, table } = yield* answering(said, interval(said, said.before));
    const everything = limitsOf(said).may.map(() => true);
    if (answers.plan0 || model.cheapest(table, everything)) {
      return { ...said, isRefused, answers, table };
    }
    const free = [];
    for (const row of model.searching(said.x, model.weightsOf(said.before))) {
      free.push(row);
      yield;
    }
    const loose =
      model.cheapest(free, model.mayActOn(said.scores)) ?? model.cheapest(free, everything);
    return { ...said, isRefused, answers, table, loose };
  }

  /* Return, with pauses, everybody's answer to somebody refused; null where one has none. */
  function* answering(said, open) {
    const { x, scores } = said;
    const limits = limitsOf(said);
    const table = [];
    for (const row of model.searching(x, model.weightsOf(said.before), open)) {
      table.push(row);
      yield;
    }
    const grid = model.exact(x, scores, limits);
    const isSame = (row) => row.acts.every((isActed, k) => isActed === grid.acts[k]);
    const row = grid && table.find(isSame);
    if (row && grid.cost < row.cost) Object.assign(row, grid); // where the descents fell short
    const ways = model.plans(table, limits.may, N_PLANS);
    const within = model.recommended(x, scores, limits);
    const answers = {
      printed: judged(model.recommended(x, scores), said),
      instant: judged(model.pruned(x, scores, within), said),
      grid: judged(grid, said),
    };
    for (let i = 0; i < N_PLANS; i++) answers[`plan${i}`] = judged(ways[i], said) ?? null;
    return { answers, table };
  }

  // ------------------------------------------------------------------ over all applicants

  let counting = ""; // of which answers is counted, or has been

  /* Count for all applicants, with the reader's answers, whose answers hold, if asked. */
  function count() {
    const { scores, ways, ends, threshold } = known;
    const asked = JSON.stringify([scores, ways, ends, threshold]);
    if (!byId("all").open || counting === asked) return;
    counting = asked;
    const meanwhile = (n) => {
      if (n) byId("shares").textContent = `Searching, applicant ${n} …`;
    };
    inPieces(answeringAll(known), () => counting === asked, drawShares, meanwhile);
  }

  function* answeringAll(said) {
    const all = [];
    for (const [i, x] of model.applicants.entries()) {
      yield i + 1;
      if (model.logOdds(x) >= 0) continue;
      const theirs = { ...said, x };
      all.push({ x, limits: limitsOf(theirs), ...(yield* answering(theirs, limitsOf(theirs))) });
    }
    return all;
  }

  function drawShares(all) {
    const share = (isSo) =>
      `${((100 * all.filter(isSo).length) / all.length).toFixed(0)}\u00a0%`;
    const isTrue = (x, { after }) => model.trueGain(x, after) >= 0;
    const isHelped = ({ answers, limits }, whose) =>
      holds(answers[whose]) && beyond(answers[whose], limits).length === 0;
    const helped = all.filter((one) => COUNTED.every((whose) => isHelped(one, whose)));
    const rows = COUNTED.map((whose) => [
      WHOSE[whose],
      share(({ answers }) => answers[whose]?.isValid),
      share(({ answers }) => holds(answers[whose])),
      share(({ x, answers }) => holds(answers[whose]) && isTrue(x, answers[whose])),
      share((one) => isHelped(one, whose)),
      helped.length ? effort(average(helped.map(({ answers }) => answers[whose].cost))) : "–",
    ]);
    const effortOf = `mean effort (of ${helped.length})`;
    const names = ["", "accepted", "and no rarer", "also in truth", "and within limits", effortOf];
    const head = names.map((name) => element("th", { scope: "col" }, name));
    const body = rows.map(([whose, ...cells]) => [
      element("th", { scope: "row" }, whose),
      ...cells.map((cell) => element("td", {}, cell)),
    ]);
    const caption =
      `Of ${all.length} refused applicants, all with your answers. What follows is by the ` +
      "true equations, how rare by the learned model, and in truth by the true density. " +
      "Effort: of those whom each of the four helps. Both searches know the true equations " +
      "and the rating that the bank asks for; the networks learned theirs, for 50 %.";
    byId("shares").replaceChildren(
      element("table", {}, ...[head, ...body].map((cells) => element("tr", {}, ...cells))),
      element("p", {}, caption),
    );
  }

  // ----------------------------------------------------------------------------- drawing

  /* Return whose answer is shown, and the answer, what was picked. */
  function shown() {
    if (!known.isRefused || state.step === 1) return [null, null];
    const { answers } = known;
    const isAsked = state.step === 3 || state.step === 4; // the others speak of the search
    if (state.pick === "own" && isAsked) {
      const acts = state.tried.map((value) => value !== null);
      return ["own", judged({ acts, values: state.tried })];
    }
    const pick = state.pick === "own" || state.step === 5 ? "plan0" : state.pick;
    const isNone = answers[pick] === null && pick.startsWith("plan");
    return isNone ? ["plan0", answers.plan0] : [pick, answers[pick]];
  }

  function draw() {
    drawSaid();
    const [whose, answer] = shown();
    drawOutcome(whose, answer);
    drawGraph(answer);
    const drawStep = [() => {}, drawLanes, drawAnswers, drawFollows, drawUnlock];
    drawStep[state.step - 1](whose, answer);
  }

  /* Draw what the reader says, and what is known of it at once. */
  function drawSaid() {
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
    const who = `applicant ${state.person + 1}`;
    byId("who").textContent = isOther
      ? `${who}, changed`
      : `${who} of ${model.applicants.length}`;
    byId("threshold").value = state.threshold;
    if (state.step === 1) {
      drawYourself();
      drawOutcome(null, null);
    } else if (state.step === 2) drawHard();
  }

  const isRefused = () =>
    state.step === 1 ? model.logOdds(state.x) < 0 : known.isRefused;

  function pill(isYes, isPlausible = true) {
    const kind = !isYes ? "no" : isPlausible ? "yes" : "but";
    const text = { no: "refused", yes: "accepted", but: "accepted, but too rare" }[kind];
    return element("span", { class: `pill ${kind}` }, text);
  }

  /* Return what is shown in one sentence. */
  function headline(whose, answer) {
    if (!isRefused()) return "The bank accepts you as you are. There is nothing to do.";
    if (!whose) {
      return (
        "A computer refused you a loan. This page tests advice that respects what you " +
        "can't do. Person and bank are invented."
      );
    }
    if (!model.mayActOn(known.scores).some(Boolean)) {
      return "You say that you can change nothing, so nothing can be recommended.";
    }
    if (whose !== "own" && answer === undefined) return "Searching …";
    if (!asks(answer)) return nothing(whose);
    const { acts, follows } = inWords(answer);
    const isGood = holds(answer) && !oddOf(whose, answer);
    const lead = isGood || whose === "own" ? "" : "It proposes: ";
    const then = follows.length ? ` Then ${listed(follows)}.` : "";
    const text = `${lead}${lead ? listed(acts) : capital(listed(acts))}.${then}`;
    return text.replace(/(?<=\d)\)/, "\u00a0of\u00a0100)"); // the first says so for all
  }

  /* Return what is said of somebody who does not answer. */
  function nothing(whose) {
    if (whose === "own") return "You try nothing yet: move a dot.";
    if (whose === "plan1" || whose === "plan2") return "No other way was found.";
    if (whose === "instant" || whose === "printed") return "The network recommends nothing.";
    const more = state.step === 5 ? "" : " Step 5 says more.";
    return `No way was found that the bank accepts and that makes you no rarer.${more}`;
  }

  /* Return why a recommendation is the same after what the reader says of one feature has
     changed, `last` being what was said before; nothing where the headline says it. */
  function whyTheSame(k, last, whose, answer) {
    if (!known.isRefused || !model.mayActOn(known.scores).some(Boolean)) return "";
    const j = columns[k];
    const name = `your ${nameOf(j)}`;
    const width = (said) => {
      const { low, high, may } = limitsOf(said);
      return may[k] ? high[k] - low[k] : -1;
    };
    const wider = width(known) - width(last); // more is allowed, less, or as much
    if (!asks(answer)) {
      if (wider > 0) return `No way was found that changes ${name}, either.`;
      return wider < 0
        ? "There was none before, and less is allowed now."
        : `How hard ${name} is changes the effort of a way, not whether there is one.`;
    }
    const isSet = answer.acts[k] && isFar(answer.values[k], known.x[j]);
    const isEasier = wider > 0 || (wider === 0 && known.scores[k] < last.scores[k]);
    if (!isEasier && !isSet) {
      return isFar(answer.after[j], known.x[j])
        ? `The same answer: in it ${name} only follows, which is no effort of yours.`
        : `The same answer: it leaves ${name} as it is.`;
    }
    if (whose === "printed" && known.scores[k] === last.scores[k]) {
      return "The same answer: this network is not told directions and limits.";
    }
    if (whose === "printed" || whose === "instant") {
      return "The same answer: for this network that makes no difference here.";
    }
    if (isSet && wider > 0) return "The same answer: the new freedom makes nothing easier.";
    if (isSet && wider < 0) return `The same answer: it keeps ${name} within that anyway.`;
    if (whose !== "plan0") return `The same answer: still ${STILL[whose]}.`;
    if (isSet) return "The same answer: of all that was found it still asks for least.";
    const { may } = limitsOf(known);
    const costs = known.table
      .filter(({ acts }) => acts[k] && acts.every((isActed, i) => !isActed || may[i]))
      .filter(({ values }) => Math.abs(values[k] - known.x[j]) > 1e-3)
      .map(({ cost }) => cost);
    const least = effort(Math.min(...costs));
    if (!costs.some(isFinite)) return `The same answer: no way was found that sets ${name}.`;
    return least === effort(answer.cost)
      ? `The same answer: to set ${name} would make hardly a difference (effort ${least}).`
      : `The same answer: to set ${name} was found to be no easier (effort ${least}).`;
  }

  function drawOutcome(whose, answer) {
    const span = (text) => element("span", {}, text);
    const { x } = state.step === 1 ? state : known;
    const children = [pill(!isRefused()), span(`rating ${percent(model.probability(x))}`)];
    if (asks(answer)) {
      children.push(span("→"), pill(answer.isValid, answer.isPlausible));
      children.push(span(percent(answer.probability)));
    }
    byId("decision").replaceChildren(...children);
    const by = [element("b", {}, WHOSE[whose]), span(`: ${WHAT[whose]}.`)];
    byId("whose").replaceChildren(...(asks(answer) ? by : []));
    byId("headline").textContent = headline(whose, answer);
    byId("why").textContent = known.why;
    // in step 4 it stands below the dots, which it would move while one is dragged
    byId("enough").replaceChildren(...(state.step === 4 ? [] : enough(whose, answer)));
  }

  /* Return whether an answer is enough, and what it asks for against what was said. */
  function enough(whose, answer) {
    if (!asks(answer)) return [];
    const odd = oddOf(whose, answer);
    const marked = odd ? [" ", element("span", { class: "odd" }, odd)] : [];
    return [verdictOf(answer), ...marked];
  }

  /* Return what a screen reader announces when all is known. */
  function spoken() {
    const [whose, answer] = shown();
    const by = whose ? `${WHOSE[whose]}: ` : "";
    const verdict = asks(answer) ? ` ${verdictOf(answer)}` : "";
    const why = known.why && ` ${known.why}`;
    return `${by}${headline(whose, answer)}${why}${verdict}`;
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

  function drawHard() {
    const limits = limitsOf(state);
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
      const place = `${placesOf(j, state.x[j], state.x[j])[0]} of 100`;
      box.querySelector(".value").textContent = isShut
        ? `${place}, beyond that limit`
        : place;
    });
  }

  function drawLanes(_, answer) {
    columns.forEach((j, k) => {
      drawLane(byId(`question-${k}`).querySelector(".lane"), j, k, answer);
    });
  }

  /* Draw where somebody stands on one feature, and where an answer moves it. */
  function drawLane(lane, j, k, answer) {
    const share = (value) => (Math.min(Math.max(model.place(j, value), 1), 99) - 1) / 98;
    const at = (p) => `calc(${THUMB / 2}rem + ${p} * (100% - ${THUMB}rem))`;
    const from = share(known.x[j]);
    const dot = element("span", { class: "dot" });
    dot.style.left = at(from);
    lane.replaceChildren(element("span", { class: "rail" }), dot);
    if (!answer || !isFar(answer.after[j], known.x[j])) return;
    const to = share(answer.after[j]);
    const isLeft = answer.after[j] < known.x[j];
    const follows = !answer.acts[k];
    const kind = follows ? " follows" : "";
    const stem = element("span", { class: `stem${kind}` });
    stem.style.left = at(Math.min(from, to));
    stem.style.width = `calc(${Math.abs(to - from)} * (100% - ${THUMB}rem))`;
    const tip = element("span", { class: `tip${isLeft ? " left" : ""}${kind}` });
    tip.style.left = at(to);
    const isBefore = isLeft ? to > 0.2 : to > 0.8; // beside the tip, where there is space
    const place = placesOf(j, known.x[j], answer.after[j])[1];
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
    const listedHere = known.isRefused ? Object.keys(WHOSE).filter(isListed) : [];
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
      : Boolean(known.answers[whose]) || !(whose === "plan1" || whose === "plan2");

  function card(whose, isShown) {
    const answer = whose === "own" ? shown()[1] : known.answers[whose];
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
      brief.append(element("span", {}, `${kind}effort ${effort(answer.cost)}`));
      const odd = oddOf(whose, answer);
      if (odd) text.append(element("span", { class: "odd" }, odd));
    } else if (answer !== undefined) brief.append(element("span", {}, "no answer"));
    return element("label", { class: `answer ${whose}` }, input, text);
  }

  /* Return which features an answer sets beyond limits. */
  const beyond = (answer, { low, high }) =>
    columns.flatMap((_, k) => {
      const value = answer.values[k];
      const isWithin = value > low[k] - 1e-6 && value < high[k] + 1e-6;
      return !answer.acts[k] || isWithin ? [] : [k];
    });

  /* Return what an answer asks for against a person's directions and limits, as a
     sentence; only the unadjusted network does, and who tries it. */
  function oddOf(whose, answer) {
    if (!(whose === "printed" || whose === "own") || !asks(answer)) return "";
    const odd = beyond(answer, limitsOf(known)).map((k) => {
      const j = columns[k];
      return DEEDS[features[j]][answer.values[k] > known.x[j] ? 1 : 0];
    });
    return odd.length ? `Against what you said: ${listed(odd)}.` : "";
  }

  function drawFollows(whose, answer) {
    const lines = asks(answer)
      ? [enough(whose, answer), ...causes(answer), ...reasons(whose, answer)]
      : [headline(whose, answer)];
    byId("follows").replaceChildren(
      ...lines.map((line) => element("p", {}, ...[line].flat())),
    );
    columns.forEach((j, k) => {
      const input = byId(`do-${j}`);
      const after = answer?.after[j] ?? known.x[j];
      const isMoved = isFar(after, known.x[j]);
      put(input, j, after, isMoved ? changeOf100(j, after) : undefined);
      input.disabled = !known.isRefused || known.scores[k] === CANT;
    });
    byId("untry").hidden = whose !== "own";
  }

  /* Return for each feature that follows what it follows from. */
  function causes(answer) {
    const isMoved = (j) => isFar(answer.after[j], known.x[j]);
    const lines = columns.flatMap((j, k) => {
      if (answer.acts[k] || !isMoved(j)) return [];
      const from = model.parents[j].filter(isMoved).map((i) => `your ${nameOf(i)}`);
      const change = `${capital(nameOf(j))} ${changeOf100(j, answer.after[j])}`;
      const closed = known.scores[k] === CANT ? ", though you can't change it yourself" : "";
      return [`${change} follows from ${listed(from)}${closed}.`];
    });
    return lines.length ? lines : ["Nothing else changes."];
  }

  /* Return for each feature of an answer what it would be without: what is left of the
     answer, and the least effort that the search found elsewhere. */
  function reasons(whose, answer) {
    return columns.flatMap((j, k) => {
      if (!answer.acts[k] || !isFar(answer.values[k], known.x[j])) return [];
      const acts = answer.acts.map((isActed, i) => isActed && i !== k);
      const left = judged({ acts, values: answer.values });
      const deed = DEEDS[features[j]][answer.values[k] > known.x[j] ? 1 : 0];
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
    if (!known.table || whose === "own") return "";
    const row = model.cheapest(
      known.table,
      limitsOf(known).may.map((isOpen, i) => isOpen && i !== k),
    );
    if (!known.answers.plan0) return " No way was found with it, either.";
    if (!row) return " Without it, nothing was found.";
    const [without, than] = [effort(row.cost), effort(answer.cost)];
    return without === than
      ? ` The easiest way found without it has nearly the same effort, ${than}.`
      : ` The easiest way found without it has effort ${without}; this one ${than}.`;
  }

  function drawGraph(answer) {
    const isActed = (j) => Boolean(answer?.acts[columns.indexOf(j)]);
    const isMoved = (j) => Boolean(answer) && isFar(answer.after[j], known.x[j]);
    const changes = [];
    features.forEach((_, j) => {
      const k = columns.indexOf(j);
      const node = byId(`node-${j}`);
      const isClosed = state.step > 1 && k >= 0 && known.scores[k] === CANT;
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
    const { isRefused, table, loose, scores } = known;
    if (!isRefused) return [text("You are accepted: nothing is locked.")];
    if (!table) return [text("Searching …")];
    const { may } = limitsOf(known);
    const now = model.cheapest(table, may);
    const isClosed = (k) => scores[k] === CANT;
    const prices = model.unlockedBy(table, may);
    if (now) {
      const cheaper = columns
        .map((_, k) => ({ opened: [k], cost: prices[k] }))
        .filter(({ opened, cost }) => isClosed(opened[0]) && cost < 0.98 * now.cost);
      const open = columns.map((_, k) => k).filter((k) => may[k]);
      const summary = `A way was found, of effort ${effort(now.cost)}.`;
      const easier = cheaper.length
        ? " It would be easier if you say:"
        : open.length < columns.length
          ? " With a \"can't\" taken back, none was found that is easier."
          : "";
      return [text(summary + easier), ...cheaper.map(key)].concat(
        text("What if you could change even less? Rule out one more:"),
        open.map(lock),
      );
    }
    const ways = columns
      .map((_, k) => ({ opened: [k], cost: prices[k] }))
      .filter(({ opened, cost }) => isClosed(opened[0]) && cost < Infinity);
    const more = model.keyOf(table, may);
    if (!ways.length && more) {
      const opened = columns.map((_, k) => k).filter((k) => more.more[k]);
      if (opened.every(isClosed)) ways.push({ opened, cost: more.cost });
    }
    const blocks = [text(`No way was found. ${blocked(may)}`)];
    if (ways.length) blocks.push(text("One was found if you say:"), ...ways.map(key));
    if (loose) blocks.push(text("One was found if you allow:"), release());
    if (blocks.length === 1) {
      const none = may.every(Boolean) ? "" : " Nor was one with everything open.";
      blocks[0].textContent += `${none} The next applicant (▶) may have a way.`;
    }
    return blocks;
  }

  function button(label, whenClicked) {
    const made = element("button", { type: "button" }, label);
    made.addEventListener("click", whenClicked);
    return made;
  }

  /* Return a button that closes a feature. */
  const lock = (k) =>
    button(`I can't change my ${nameOf(columns[k])}`, () => scored(k, CANT));

  /* Return a button that opens closed features, as hard as they were before. */
  function key({ opened, cost }) {
    const names = opened.map((k) => `I can change my ${nameOf(columns[k])} after all`);
    return button(`${names.join(", and ")} (effort ${effort(cost)})`, () => {
      opened.forEach((k) => (state.scores[k] = state.before[k]));
      state.pick = "plan0";
      changed();
    });
  }

  /* Return a button that takes directions and limits back, and opens what is needed. */
  function release() {
    const { acts, cost } = known.loose;
    const opened = columns.map((_, k) => k).filter((k) => acts[k] && known.scores[k] === CANT);
    const changes = opened.map((k) => `changes of your ${nameOf(columns[k])}`);
    const label = listed([...changes, "every direction, as far as people go"]);
    return button(`${label} (effort ${effort(cost)})`, () => {
      opened.forEach((k) => (state.scores[k] = state.before[k]));
      state.ways = columns.map(() => "any");
      state.ends = columns.map(() => null);
      state.pick = "plan0";
      changed();
    });
  }

  /* Return what blocks somebody for whom the search found nothing, by all that it tried. */
  function blocked(may) {
    const open = known.table.filter(({ acts }) =>
      acts.every((isActed, k) => !isActed || may[k]),
    );
    const lost = Math.max(-Math.max(...open.map((row) => row.gain)), 0); // nats
    if (!may.some(Boolean)) return "You closed everything.";
    if (lost === Infinity) return "The bank accepts nothing of all that the search tried.";
    const often = lost < SLIGHT ? "slightly less often" : `${times(lost)} less often, or more,`;
    return (
      "Of all that the search tried, whatever the bank accepts makes you somebody who is " +
      `seen ${often} than you are now, and such advice is not to be trusted.`
    );
  }

  build();
  if (hasAddress) {
    addEventListener("hashchange", () => {
      if (history.state) {
        // the browser's Back: another step, and all that was said since
        state.step = history.state.step;
        known.why = "";
        draw();
        keepAddress();
        return;
      }
      state = { ...start(), before: state.before };
      read(location.hash.slice(1));
      changed();
    });
  }
  read(hasAddress ? location.hash.slice(1) : hash);
  model.acceptFrom(state.threshold);
  known = { ...known, ...structuredClone(state), isRefused: model.logOdds(state.x) < 0 };
  draw();
  changed();
}
