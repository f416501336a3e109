/* Answer test_page.py: read people and scores from stdin, write what page/model.js says. */

import { readFileSync } from "node:fs";
import { createModel } from "../page/model.js";

const asked = JSON.parse(readFileSync(0, "utf8"));
const data = JSON.parse(readFileSync(new URL("../page/model.json", import.meta.url)));
const model = createModel(data);
const worlds = { flow: model.flow, truth: model.truth };
const milliseconds = { exact: [], searched: [], recommended: [] };

function timed(name, answer) {
  const start = performance.now();
  const found = answer();
  milliseconds[name].push(performance.now() - start);
  return found;
}

function looked(world, x, scores, weights) {
  const table = timed("searched", () => model.searched(world, x, weights));
  const may = model.mayActOn(scores);
  const has = model.cheapest(table, may);
  const key = has ? null : model.keyOf(table, may);
  return {
    table,
    cost: has?.cost ?? null,
    unlocked: model.unlockedBy(table, may),
    key: key?.more ?? may.map(() => false),
  };
}

const people = asked.x.map((x, i) => {
  const scores = asked.scores[i];
  const weights = model.weightsOf(scores);
  const recommended = timed("recommended", () => model.recommended(x, scores));
  const { acts, values } = recommended;
  const every = [acts, values];
  const said = { flow: model.outcome(model.flow, x, ...every, weights) };
  said.truth = model.outcome(model.truth, x, ...every, weights);
  return {
    logOdds: model.logOdds(x),
    probability: model.probability(x),
    logDensity: model.logDensity(x),
    noise: { flow: model.flow.abduct(x), truth: model.truth.abduct(x) },
    weights,
    recommended,
    said,
    after: Object.fromEntries(
      Object.entries(worlds).map(([name, world]) => [
        name,
        model.counterfactual(world, x, asked.acts[i], asked.values[i]),
      ]),
    ),
    exact: timed("exact", () => model.exact(model.truth, x, scores)),
    searched: Object.fromEntries(
      Object.entries(worlds).map(([name, world]) => [
        name,
        i < asked.n_searched ? looked(world, x, scores, weights) : null,
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
process.stdout.write(JSON.stringify({ people, strict, milliseconds }, infinite));
