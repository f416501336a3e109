/* Answer test_page.py: read people and scores from stdin, write what page/model.js answers. */

import { readFileSync } from "node:fs";
import { createModel } from "../page/model.js";

const asked = JSON.parse(readFileSync(0, "utf8"));
const data = JSON.parse(readFileSync(new URL("../page/model.json", import.meta.url)));
const model = createModel(data);
const worlds = { flow: model.flow, truth: model.truth };
const milliseconds = { exact: [], searched: [], recommended: [] };

function timed(name, answer) {
  const start = performance.now();
  const value = answer();
  milliseconds[name].push(performance.now() - start);
  return value;
}

/* With limits, a table is of what may be set where everything is open. */
function searched(world, x, scores, weights, limits) {
  const open = model.intervalOf(
    x,
    scores.map(() => 1),
    limits,
  );
  const table = timed("searched", () => model.searched(world, x, weights, open));
  const may = model.intervalOf(x, scores, limits).may;
  const has = model.cheapest(table, may);
  const key = has ? null : model.keyOf(table, may);
  return {
    table,
    cost: has?.cost ?? null,
    unlocked: model.unlockedBy(table, may),
    key: key?.more ?? may.map(() => false),
    plans: model.plans(table, may, 3),
  };
}

const people = asked.x.map((x, i) => {
  const scores = asked.scores[i];
  const weights = model.weightsOf(scores);
  const limits = asked.limits[i];
  const interval = model.intervalOf(x, scores, limits);
  const within = model.recommended(x, scores, interval);
  const recommended = timed("recommended", () => model.recommended(x, scores));
  const { acts, values } = recommended;
  const every = [acts, values];
  const outcomes = { flow: model.outcome(model.flow, x, ...every, weights) };
  outcomes.truth = model.outcome(model.truth, x, ...every, weights);
  return {
    logOdds: model.logOdds(x),
    probability: model.probability(x),
    logDensity: model.logDensity(x),
    noise: { flow: model.flow.abduct(x), truth: model.truth.abduct(x) },
    weights,
    recommended,
    outcomes,
    after: Object.fromEntries(
      Object.entries(worlds).map(([name, world]) => [
        name,
        model.counterfactual(world, x, asked.acts[i], asked.values[i]),
      ]),
    ),
    places: x.map((value, j) => model.place(j, value)),
    there: x.map((value, j) => model.valueAt(j, model.place(j, value))),
    within: {
      may: interval.may,
      recommended: within,
      exact: model.exact(model.truth, x, scores, interval),
      searched:
        i < asked.n_searched ? searched(model.truth, x, scores, weights, limits) : null,
    },
    pruned: model.pruned(model.flow, x, scores, recommended),
    exact: timed("exact", () => model.exact(model.truth, x, scores)),
    searched: Object.fromEntries(
      Object.entries(worlds).map(([name, world]) => [
        name,
        i < asked.n_searched ? searched(world, x, scores, weights) : null,
      ]),
    ),
  };
});
model.acceptFrom(asked.threshold);
const strict = asked.x.map((x, i) => ({
  logOdds: model.logOdds(x),
  probability: model.probability(x),
  exact: model.exact(model.truth, x, asked.scores[i]),
}));
const infinite = (_, value) => (Math.abs(value) === Infinity ? null : value);
const answers = { people, strict, milliseconds };
process.stdout.write(JSON.stringify(answers, infinite));
