/* Answer test_page.py: read people and scores from stdin, write what page/model.js answers. */

import { readFileSync } from "node:fs";
import { createModel } from "../page/model.js";

const asked = JSON.parse(readFileSync(0, "utf8"));
const data = JSON.parse(readFileSync(new URL("../page/model.json", import.meta.url)));
const model = createModel(data);

/* With limits, a table is of what may be set where everything is open. */
function searched(x, scores, weights, limits) {
  const open = model.intervalOf(
    x,
    scores.map(() => 1),
    limits,
  );
  const table = model.searched(x, weights, open);
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
  const recommended = model.recommended(x, scores);
  const outcome = model.outcome(x, recommended.acts, recommended.values, weights);
  return {
    probability: model.probability(x),
    logDensity: model.logDensity(x),
    noise: model.abduct(x),
    weights,
    recommended,
    outcome,
    trueGain: model.trueGain(x, outcome.after),
    after: model.counterfactual(x, asked.acts[i], asked.values[i]),
    places: x.map((value, j) => model.place(j, value)),
    there: x.map((value, j) => model.valueAt(j, model.place(j, value))),
    within: {
      may: interval.may,
      recommended: model.recommended(x, scores, interval),
      exact: model.exact(x, scores, interval),
      searched: i < asked.n_searched ? searched(x, scores, weights, limits) : null,
    },
    pruned: model.pruned(x, scores, recommended),
    exact: model.exact(x, scores),
    searched: i < asked.n_searched ? searched(x, scores, weights) : null,
  };
});
model.acceptFrom(asked.threshold);
const strict = asked.x.map((x, i) => ({
  logOdds: model.logOdds(x),
  probability: model.probability(x),
  exact: model.exact(x, asked.scores[i]),
}));
const infinite = (_, value) => (Math.abs(value) === Infinity ? null : value);
const answers = { people, strict };
process.stdout.write(JSON.stringify(answers, infinite));
