/* The models behind the page, in plain JavaScript: who decides, what follows, what to do.

   It computes what lib computes in Python; each part names the module that it was
   written after, and tests/test_page.py holds both to the same answers. Its numbers come
   from model.json, which export.py writes. Features are standardised, as everywhere in lib:
   D of them, K of which can be acted on. A person is an array of D numbers. An action is
   `acts`, K booleans, and `values`, K numbers. */

const LOG_2_PI = Math.log(2 * Math.PI);

/* Return the numbers of a tensor that export.py has written, row after row. */
export function decoded(tensor) {
  const text = atob(tensor.f32 ?? tensor.i24);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  if (tensor.f32) {
    const view = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 4 }, (_, i) =>
      view.getFloat32(4 * i, true),
    );
  }
  return Float64Array.from({ length: bytes.length / 3 }, (_, i) => {
    const [low, middle, high] = bytes.subarray(3 * i, 3 * i + 3);
    return (((high << 24) | (middle << 16) | (low << 8)) >> 8) * tensor.step;
  });
}

/* Return the rows of a matrix that export.py has written. */
export function rowsOf(tensor) {
  const [n, width] = tensor.shape;
  const values = decoded(tensor);
  return Array.from({ length: n }, (_, i) => [
    ...values.subarray(i * width, (i + 1) * width),
  ]);
}

const layersOf = (layers) =>
  layers.map(({ weight, bias }) => ({
    weight: decoded(weight),
    bias: decoded(bias),
    nIn: weight.shape[0],
    nOut: weight.shape[1],
  }));

/* Return what one linear layer gives for an input. */
function linear(layer, input) {
  const out = Float64Array.from(layer.bias);
  for (let i = 0; i < layer.nIn; i++) {
    const value = input[i];
    if (value === 0) continue;
    const row = i * layer.nOut;
    for (let k = 0; k < layer.nOut; k++) out[k] += value * layer.weight[row + k];
  }
  return out;
}

/* Return what layers with ReLU between them give (torch.nn.Sequential). */
function network(layers, input) {
  let out = input;
  layers.forEach((layer, i) => {
    out = linear(layer, out);
    if (i < layers.length - 1) out = out.map((value) => Math.max(value, 0));
  });
  return out;
}

const sigmoid = (value) => 1 / (1 + Math.exp(-value));
const logit = (share) => Math.log(share / (1 - share));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const dot = (one, other) => one.reduce((total, value, i) => total + value * other[i], 0);

/* Return everything that the page computes, from the contents of model.json. */
export function createModel(data) {
  const { features, kinds, parents, order, blocks, mean, std, low, high } = data.population;
  const nFeatures = features.length;
  const columns = features.map((_, j) => j).filter((j) => kinds[j] === "actionable");
  const range = low.map((value, j) => high[j] - value);
  const quantiles = rowsOf(data.quantiles); // of each feature, at 0 to 100 of 100 people
  const reaches = reachedFrom(parents, order);
  const moves = order.filter((j) => columns.some((i) => i === j || reaches[i].has(j)));

  // ------------------------------------------------- classifier (lib.method.classifier)

  const bank = layersOf(data.classifier);
  const last = bank.at(-1).bias;
  const fitted = last[0];
  let bound = 0; // log-odds of the probability from which on the bank accepts

  /* Let the bank accept from this probability on (Classifier.with_threshold). */
  function acceptFrom(share) {
    bound = logit(share);
    last[0] = fitted - bound;
  }

  /* Return the log-odds of a positive decision, beyond what the bank asks for. */
  const logOdds = (x) => network(bank, x)[0];

  /* Return the probability of a positive decision. */
  const probability = (x) => sigmoid(logOdds(x) + bound);

  /* Return the log-odds, and how they change with each feature. */
  function logOddsAndSlope(x) {
    const inputs = [x];
    for (const layer of bank) {
      const out = linear(layer, inputs.at(-1));
      const isLast = inputs.length === bank.length;
      inputs.push(isLast ? out : out.map((value) => Math.max(value, 0)));
    }
    let slope = Float64Array.of(1);
    for (let l = bank.length - 1; l >= 0; l--) {
      const { weight, nIn, nOut } = bank[l];
      const before = new Float64Array(nIn);
      for (let i = 0; i < nIn; i++) {
        if (l > 0 && inputs[l][i] <= 0) continue;
        for (let k = 0; k < nOut; k++) before[i] += weight[i * nOut + k] * slope[k];
      }
      slope = before;
    }
    return [inputs.at(-1)[0], slope];
  }

  // ------------------------------------------------------------- flow (lib.method.flow)

  const maps = data.flow.features.map((feature) =>
    feature.raw ? { raw: feature.raw } : { layers: layersOf(feature.layers) },
  );

  /* Return a feature's map z = exp(s) x + t, given all features: t, s, and how both change
     with each of its parents. */
  function mapOf(j, x) {
    const causes = parents[j];
    let raw = maps[j].raw;
    const slopes = [new Float64Array(causes.length), new Float64Array(causes.length)];
    if (!raw) {
      const [first, last] = maps[j].layers;
      const sums = linear(
        first,
        causes.map((i) => x[i]),
      );
      const hidden = sums.map((value) => (value > 0 ? value : Math.expm1(value)));
      raw = linear(last, hidden);
      for (let h = 0; h < first.nOut; h++) {
        const bend = sums[h] > 0 ? 1 : hidden[h] + 1;
        for (let p = 0; p < causes.length; p++) {
          const change = bend * first.weight[p * first.nOut + h];
          slopes[0][p] += change * last.weight[2 * h];
          slopes[1][p] += change * last.weight[2 * h + 1];
        }
      }
    }
    const bounded = 1 + Math.abs(raw[1] / data.flow.log_least);
    return {
      shift: raw[0],
      logScale: raw[1] / bounded,
      shiftSlope: slopes[0],
      logScaleSlope: slopes[1].map((slope) => slope / bounded ** 2),
    };
  }

  /* Return the noise z behind a person's features, as the networks take it. */
  const flowNoise = (x) =>
    x.map((value, j) => {
      const { shift, logScale } = mapOf(j, x);
      return value * Math.exp(logScale) + shift;
    });

  /* Return the log-density of a person, in nats, or some of its terms, and how they change
     with each feature. */
  function logDensityAndSlope(x, some = order) {
    const slope = new Float64Array(nFeatures);
    let total = 0;
    for (const j of some) {
      const { shift, logScale, shiftSlope, logScaleSlope } = mapOf(j, x);
      const scale = Math.exp(logScale);
      const z = x[j] * scale + shift;
      total += logScale - 0.5 * z ** 2 - 0.5 * LOG_2_PI;
      slope[j] -= z * scale;
      parents[j].forEach((i, p) => {
        slope[i] +=
          logScaleSlope[p] - z * (x[j] * scale * logScaleSlope[p] + shiftSlope[p]);
      });
    }
    return [total, slope];
  }

  const logDensity = (x, some) => logDensityAndSlope(x, some)[0];

  // ----------------------------------------------- true equations (lib.method.loan.scm)

  const inUnits = (x) => x.map((value, j) => value * std[j] + mean[j]);

  /* Mechanisms in model units, from all features by their letter: what is added to the
     noise, and its slope by the parents that an action can move. Education is bent. */
  const score = ([G, A]) => -1 + 0.5 * G + sigmoid(0.1 * A);
  const plain = [
    () => 0,
    () => -35,
    null,
    ([G, A]) => 1 - 0.01 * (A - 5) ** 2 + (1 - G),
    ([G, A, , L]) => -1 + 0.1 * A + 2 * (1 - G) + L,
    ([G, A, E]) => -4 + 0.1 * (A + 35) + 2 * G + G * E,
    ([, , , , , I]) => -4 + 1.5 * Math.max(I, 0),
  ];
  const slopeInUnits = {
    4: () => ({ 3: 1 }),
    6: ([, , , , , I]) => ({ 5: I >= 0 ? 1.5 : 0 }),
  };

  /* Return the noise behind a person's features, by the true equations. */
  function abduct(x) {
    const units = inUnits(x);
    const noise = (value, j) =>
      j === 2 ? logit(value + 0.5) - score(units) : value - plain[j](units);
    return units.map(noise);
  }

  /* Return by how many nats somebody is more common after an action, by the true density:
     the noise of what an action can move is normal, with these standard deviations. */
  const spread = { 3: 2, 4: 3, 5: 2, 6: 5 };
  function trueGain(x, after) {
    const [before, now] = [abduct(x), abduct(after)];
    return sum(columns.map((j) => (before[j] ** 2 - now[j] ** 2) / (2 * spread[j] ** 2)));
  }

  /* Return a feature from its parents, in x, and its noise, and how it changes with each
     of the parents. */
  function mechanism(j, x, noise) {
    const units = inUnits(x);
    const value = j === 2 ? -0.5 + sigmoid(score(units) + noise) : plain[j](units) + noise;
    const slopes = slopeInUnits[j]?.(units) ?? {};
    const slope = parents[j].map((i) => ((slopes[i] ?? 0) * std[i]) / std[j]);
    return [(value - mean[j]) / std[j], slope];
  }

  // ---------------------------------------- places (lib.method.report.percentile_ranks)

  /* Return above how many of 100 people a value is; between two of them, in between. */
  function place(j, value) {
    const known = quantiles[j];
    const above = known.findIndex((quantile) => quantile > value);
    if (above === 0) return 0;
    if (above < 0) return 100;
    return above - 1 + (value - known[above - 1]) / (known[above] - known[above - 1]);
  }

  /* Return the value at a place, from 0 to 100. */
  function valueAt(j, where) {
    const below = Math.min(Math.floor(where), 99);
    const [from, to] = [quantiles[j][below], quantiles[j][below + 1]];
    return from + (where - below) * (to - from);
  }

  // ----------------------------------------------------- limits (lib.method.limits)

  /* Return to what values a person may set each of the K features.

     `limits` holds for each of them {fall, rise, low, high}: whether it may be lowered and
     raised, and values that it must not go beyond, or nothing. */
  function intervalOf(x, scores, limits) {
    const ends = columns.map((j, k) => {
      const { fall = true, rise = true, low: least, high: most } = limits?.[k] ?? {};
      return [
        Math.max(low[j], fall ? -Infinity : x[j], least ?? -Infinity),
        Math.min(high[j], rise ? Infinity : x[j], most ?? Infinity),
      ];
    });
    return {
      low: ends.map(([from]) => from),
      high: ends.map(([, to]) => to),
      may: mayActOn(scores).map((canAct, k) => canAct && ends[k][0] <= ends[k][1]),
    };
  }

  /* Return the nearest values that may be set (Interval.project). */
  const nearest = (interval, values) =>
    values.map((value, k) =>
      Math.min(Math.max(value, interval.low[k]), interval.high[k]),
    );

  // --------------------------------- acting (lib.method.scm.CausalModel.counterfactual)

  /* Return all features after an action; what it does not reach keeps its value. */
  function counterfactual(x, acts, values, noise = abduct(x)) {
    return followed(x, acts, values, noise)[0];
  }

  /* Return the same, and how each feature changes with each of the K values. */
  function followed(x, acts, values, noise) {
    const after = [...x];
    const change = x.map(() => null);
    columns.forEach((j, k) => {
      if (!acts[k]) return;
      after[j] = values[k];
      change[j] = columns.map((_, i) => (i === k ? 1 : 0));
    });
    for (const j of moves) {
      const k = columns.indexOf(j);
      const moved = parents[j].some((i) => change[i]);
      if (!moved || (k >= 0 && acts[k])) continue;
      const [value, slope] = mechanism(j, after, noise[j]);
      after[j] = value;
      change[j] = columns.map((_, i) =>
        sum(parents[j].map((cause, p) => slope[p] * (change[cause]?.[i] ?? 0))),
      );
    }
    return [after, change];
  }

  /* Return the effort of an action (lib.method.problem.Problem.action_cost). */
  const costOf = (x, acts, values, weights) =>
    sum(
      columns.map((j, k) =>
        acts[k] ? (weights[k] * (x[j] - values[k]) ** 2) / range[j] : 0,
      ),
    ) / columns.length;

  /* Return what an action comes to: what follows, the decision, the plausibility. */
  function outcome(x, acts, values, weights) {
    const after = counterfactual(x, acts, values);
    const odds = logOdds(after);
    const gain = acts.some(Boolean) ? logDensity(after, moves) - logDensity(x, moves) : 0;
    return {
      acts,
      values: columns.map((j, k) => (acts[k] ? values[k] : x[j])),
      after,
      logOdds: odds,
      probability: sigmoid(odds + bound),
      isValid: odds >= 0,
      gain,
      isPlausible: gain >= 0,
      cost: costOf(x, acts, values, weights),
    };
  }

  // ------------------------------------------------ preferences (lib.method.preferences)

  const { gamma, w_max: most } = data.icarma.profile;

  /* Return which features a person may act on; scores go from 1 to K, K + 1 is "can't". */
  const mayActOn = (scores) => scores.map((score) => score <= columns.length);

  /* Return how hard each feature is, from 0 to 1; 0 where a person can't. */
  const hardness = (scores) =>
    scores.map((score) =>
      score > columns.length ? 0 : (score - 1) ** gamma / (columns.length - 1),
    );

  /* Return what each feature weighs in the cost. */
  const weightsOf = (scores) => hardness(scores).map((hard) => 1 + (most - 1) * hard);

  // --------------------------------------------------------- iCARMA (lib.method.icarma)

  const maskLayers = layersOf(data.icarma.mask);
  const actionLayers = layersOf(data.icarma.action);

  /* Return what the two networks recommend, at once; it may be wrong, see `outcome`.

     They have not heard limits: values beyond an interval, if one is given, become the
     nearest within it. */
  function recommended(x, scores, interval) {
    const may = interval ? interval.may : mayActOn(scores);
    const heard = mayActOn(scores).map(Number);
    const context = [...flowNoise(x), ...heard, ...hardness(scores)];
    const logits = [...network(maskLayers, context)];
    const acts = logits.map((value, k) => value > 0 && may[k]);
    const shifts = network(actionLayers, [...context, ...acts.map(Number)]);
    const proposed = columns.map((j, k) => x[j] + shifts[k]);
    const allowed = interval ? nearest(interval, proposed) : proposed;
    const values = columns.map((j, k) => (acts[k] ? allowed[k] : x[j]));
    return { acts, values };
  }

  /* Return an answer without what can be left out, from the hardest feature down; as it is
     where it does not hold (lib.method.metrics.Pruned). */
  function pruned(x, scores, { acts, values }) {
    const weights = weightsOf(scores);
    const holds = (some) => {
      const { logOdds: odds, gain } = outcome(x, some, values, weights);
      return odds >= sure && gain >= sure;
    };
    if (!holds(acts)) return { acts, values };
    const dear = columns.map((j, k) => {
      const cost = acts[k] ? (weights[k] * (values[k] - x[j]) ** 2) / range[j] : 0;
      return scores[k] + cost / (1 + cost);
    });
    const order = columns.map((_, k) => k).sort((a, b) => dear[b] - dear[a]);
    const left = order.reduce((some, k) => {
      const fewer = some.map((acted, i) => acted && i !== k);
      return holds(fewer) ? fewer : some;
    }, acts);
    return { acts: left, values: columns.map((j, k) => (left[k] ? values[k] : x[j])) };
  }

  // --------------------------------- search over all values (lib.search.descent, .sets)

  const { sets, sure, missing, tiny, least_weight: leastWeight, scouts } = data.walk;
  const isIn = sets.map((set) => set.map(Boolean));

  /* Return a judge of actions on one set of features (evaluator.ActionEvaluator). */
  function judgeOf(x, acts, weights, interval) {
    const factual = columns.map((j) => x[j]);
    const noise = abduct(x);
    const least = logDensity(x, moves);
    const allowed = (values) =>
      nearest(interval, values).map((value, k) => (acts[k] ? value : factual[k]));
    const seen = (values) => {
      const after = counterfactual(x, acts, values, noise);
      const cost = costOf(x, acts, values, weights);
      return { cost, odds: logOdds(after), gain: logDensity(after, moves) - least };
    };
    const seenAndSlopes = (values) => {
      const [after, change] = followed(x, acts, values, noise);
      const [odds, oddsSlope] = logOddsAndSlope(after);
      const [density, densitySlope] = logDensityAndSlope(after, moves);
      const byValues = (slope) =>
        columns.map((_, k) => sum(after.map((_, j) => slope[j] * (change[j]?.[k] ?? 0))));
      const cost = costOf(x, acts, values, weights);
      return [
        { cost, odds, gain: density - least },
        [byValues(oddsSlope), byValues(densitySlope)],
      ];
    };
    return { factual, acts, weights, interval, allowed, seen, seenAndSlopes };
  }

  /* Return a memory for the best of what is seen (evaluator.Incumbents). */
  const nothingFound = (values) => ({
    cost: Infinity,
    values,
    odds: -Infinity,
    gain: -Infinity,
  });

  function see(incumbent, values, { cost, odds, gain }) {
    if (odds >= sure && gain >= sure && cost < incumbent.cost) {
      incumbent.cost = cost;
      incumbent.values = values;
    }
    if (gain >= sure) incumbent.odds = Math.max(incumbent.odds, odds);
    if (odds >= sure) incumbent.gain = Math.max(incumbent.gain, gain);
  }

  const penalised = ({ cost, odds, gain }) =>
    cost + missing * (Math.max(2 * sure - odds, 0) + Math.max(2 * sure - gain, 0));

  /* Return the best of the scattered actions, as a start (descent.sobol_starts). */
  function scouted(judge, incumbent) {
    let best = Infinity;
    let start = judge.factual;
    const { low: from, high: to } = judge.interval;
    for (const point of scouts) {
      const share = point.at(-1);
      const values = judge.allowed(
        judge.factual.map(
          (value, k) => value + share * (from[k] + (to[k] - from[k]) * point[k] - value),
        ),
      );
      const seen = judge.seen(values);
      see(incumbent, values, seen);
      const loss = penalised(seen);
      if (loss < best) [best, start] = [loss, values];
    }
    return start;
  }

  /* Return the cheapest change within two tangents (descent.cheapest_within). */
  function cheapestWithin([one, other], bounds, price) {
    const over = (a, b) => sum(a.map((value, k) => (value * b[k]) / price[k]));
    const length = [Math.max(over(one, one), tiny), Math.max(over(other, other), tiny)];
    const shared = over(one, other);
    const alone = bounds.map((bound, i) => Math.max(bound / length[i], 0));
    let much;
    if (alone[0] * shared >= bounds[1] - tiny) much = [alone[0], 0];
    else if (alone[1] * shared >= bounds[0] - tiny) much = [0, alone[1]];
    else {
      const product = length[0] * length[1];
      const determinant = Math.max(product - shared ** 2, 1e-6 * product);
      much = [0, 1].map((i) =>
        Math.max((length[1 - i] * bounds[i] - shared * bounds[1 - i]) / determinant, 0),
      );
    }
    return one.map((value, k) => (much[0] * value + much[1] * other[k]) / price[k]);
  }

  const lacking = ({ odds, gain }) => [2 * sure - odds, 2 * sure - gain];

  /* Descend from a start by sequential quadratic programming (descent.descend). */
  function descend(judge, start, incumbent) {
    const price = judge.weights.map((w, k) => Math.max(w, leastWeight) / range[columns[k]]);
    let values = judge.allowed(start);
    let share = 1;
    for (let step = 0; step < data.walk.n_steps; step++) {
      const [seen, all] = judge.seenAndSlopes(values);
      see(incumbent, values, seen);
      const slopes = all.map((slope) => slope.map((rate, k) => (judge.acts[k] ? rate : 0)));
      const away = values.map((value, k) => value - judge.factual[k]);
      const bounds = lacking(seen).map((bound, i) => bound + dot(slopes[i], away));
      const towards = cheapestWithin(slopes, bounds, price);
      const first = judge.allowed(
        values.map((value, k) => value + share * (towards[k] - away[k])),
      );
      const ofFirst = judge.seen(first);
      const back = cheapestWithin(slopes, lacking(ofFirst), price);
      const second = judge.allowed(first.map((value, k) => value + back[k]));
      const ofSecond = judge.seen(second);
      see(incumbent, first, ofFirst);
      see(incumbent, second, ofSecond);
      const losses = [seen, ofFirst, ofSecond].map(penalised);
      const best = losses.indexOf(Math.min(...losses));
      values = [values, first, second][best];
      share = best > 0 ? Math.min(1.5 * share, 1) : 0.4 * share;
    }
  }

  /* Yield the cheapest verified action on each set of features, as a search finds it.

     Descents begin at the person as they are and at the best of a few scattered actions.
     (A start from a network would save steps; for one person they cost little.) Sets with
     a feature that limits leave no value have none. */
  function* searching(x, weights, interval = intervalOf(x, allEasy)) {
    for (const acts of isIn) {
      const judge = judgeOf(x, acts, weights, interval);
      const incumbent = nothingFound(judge.factual);
      if (isOpen(acts, interval.may)) {
        const start = scouted(judge, incumbent);
        descend(judge, judge.factual, incumbent);
        descend(judge, start, incumbent);
      }
      yield { acts, ...incumbent };
    }
  }

  const allEasy = columns.map(() => 1);
  const searched = (...asked) => [...searching(...asked)];

  const isOpen = (acts, may) => acts.every((acted, k) => !acted || may[k]);

  /* Return the cheapest action of a table that a person may do, or null if there is none
     (lib.search.sets.Table.cheapest). */
  function cheapest(table, may) {
    let best = null;
    for (const row of table) {
      if (isOpen(row.acts, may) && row.cost < (best?.cost ?? Infinity)) best = row;
    }
    return best;
  }

  /* Return up to so many different ways of a table, the cheapest first: each spares a
     feature that every cheaper one asks for, or it would only ask for more. */
  function plans(table, may, most) {
    const open = table.filter((row) => isOpen(row.acts, may) && row.cost < Infinity);
    const kept = [];
    for (const row of open.sort((a, b) => a.cost - b.cost)) {
      const asksMore = kept.some((other) => other.acts.every((a, k) => !a || row.acts[k]));
      if (!asksMore && kept.length < most) kept.push(row);
    }
    return kept;
  }

  /* Return the lowest cost if one more feature were open, for each of the K features;
     infinite where that is not enough (lib.search.sets.Table.unlocked_by). */
  const unlockedBy = (table, may) =>
    columns.map(
      (_, k) =>
        cheapest(
          table,
          may.map((isAllowed, i) => isAllowed || i === k),
        )?.cost ?? Infinity,
    );

  /* Return the fewest closed features that unlock recourse, as K booleans; of several such
     sets the cheapest, and null where none does (Table.minimal_unlocking_set). */
  function keyOf(table, may) {
    let best = null;
    for (const more of isIn) {
      if (more.some((isOpened, k) => isOpened && may[k])) continue;
      const size = more.filter(Boolean).length;
      const open = may.map((isAllowed, k) => isAllowed || more[k]);
      const cost = cheapest(table, open)?.cost ?? Infinity;
      const isBetter =
        !best || size < best.size || (size === best.size && cost < best.cost);
      if (cost < Infinity && isBetter) best = { more, size, cost };
    }
    return best;
  }

  // -------------------------------------------------- exact on a grid (lib.method.grid)

  const [firstLayer, ...laterLayers] = bank;

  /* Return what each action of one block comes to, row after row (Grid._tabulate). */
  function tabulated(x, noise, at, interval) {
    const indices = at.map((j) => columns.indexOf(j));
    let actions = [columns.map(() => null)];
    const { low: from, high: to, may } = interval;
    for (const k of indices.filter((k) => k >= 0 && may[k])) {
      const within = data.grid[k]
        .map((distance) => x[columns[k]] + distance)
        .map((value) => Math.min(Math.max(value, from[k]), to[k]));
      const tried = [null, ...new Set(within)];
      actions = actions.flatMap((action) =>
        tried.map((value) => action.map((v, i) => (i === k ? value : v))),
      );
    }
    const before = logDensity(x, at);
    return actions.map((action) => {
      const acts = action.map((value) => value !== null);
      const after = counterfactual(x, acts, action, noise);
      const gain = acts.some(Boolean) ? logDensity(after, at) - before : 0;
      const hidden = new Float64Array(firstLayer.nOut);
      for (const j of at) {
        const row = j * firstLayer.nOut;
        for (let h = 0; h < hidden.length; h++) {
          hidden[h] += (after[j] - x[j]) * firstLayer.weight[row + h];
        }
      }
      return { acts, values: action, gain, hidden };
    });
  }

  /* Return the cheapest valid and plausible action on the grid, or null.

     As in lib.method.grid: features that no path connects form components, the blocks, over
     which cost, log-density and the classifier's first layer are sums. Pairs of rows, one of
     each of two blocks, are visited from cheap to dear; one that costs no less than the best
     so far ends its line. So the answer is the optimum of the grid. */
  function exact(x, scores, interval = intervalOf(x, scores)) {
    const weights = weightsOf(scores);
    const noise = abduct(x);
    const [one, other] = blocks.map((at) => {
      const rows = tabulated(x, noise, at, interval).map((row) => ({
        ...row,
        cost: costOf(x, row.acts, row.values, weights),
      }));
      return rows.sort((a, b) => a.cost - b.cost);
    });
    const bestGain = (rows) =>
      rows.reduce((most, row) => Math.max(most, row.gain), -Infinity);
    const [lines, partners] = [
      one.filter((row) => row.gain + bestGain(other) >= 0),
      other.filter((row) => row.gain + bestGain(one) >= 0),
    ];
    const base = linear(firstLayer, x);
    let best = null;
    let cost = Infinity;
    for (const line of lines) {
      const sums = base.map((value, h) => value + line.hidden[h]);
      for (const partner of partners) {
        const total = line.cost + partner.cost;
        if (total >= cost) break;
        if (line.gain + partner.gain < 0) continue;
        if (!isAccepted(sums, partner.hidden)) continue;
        if (!line.acts.some(Boolean) && !partner.acts.some(Boolean)) continue;
        [best, cost] = [[line, partner], total];
        break;
      }
    }
    if (!best) return null;
    const acts = columns.map((_, k) => best.some((row) => row.acts[k]));
    const values = columns.map(
      (j, k) => best.find((row) => row.acts[k])?.values[k] ?? x[j],
    );
    return { acts, values, cost };
  }

  // the search's inner loop: no array is made in it
  const sumsOfLayers = bank.map((layer) => new Float64Array(layer.nOut));

  /* Return whether the bank accepts, from the sums of the first layer, in two parts. */
  function isAccepted(one, other) {
    let input = sumsOfLayers[0];
    for (let h = 0; h < input.length; h++) input[h] = one[h] + other[h];
    laterLayers.forEach(({ weight, bias, nIn, nOut }, l) => {
      const out = sumsOfLayers[l + 1];
      out.set(bias);
      for (let i = 0; i < nIn; i++) {
        const value = input[i];
        if (value <= 0) continue;
        for (let k = 0, at = i * nOut; k < nOut; k++, at++) out[k] += value * weight[at];
      }
      input = out;
    });
    return input[0] >= 0;
  }

  return {
    features,
    parents,
    columns,
    low,
    high,
    words: data.words,
    network: data.icarma,
    applicants: rowsOf(data.applicants),
    directions: data.directions,
    place,
    valueAt,
    intervalOf,
    acceptFrom,
    logOdds,
    probability,
    logDensity,
    abduct,
    trueGain,
    counterfactual,
    outcome,
    mayActOn,
    weightsOf,
    recommended,
    pruned,
    searching,
    searched,
    cheapest,
    plans,
    unlockedBy,
    keyOf,
    exact,
  };
}

/* Return for each feature the set of those that directed paths lead to. */
function reachedFrom(parents, order) {
  const reaches = parents.map(() => new Set());
  for (const j of [...order].reverse()) {
    parents.forEach((causes, child) => {
      if (!causes.includes(j)) return;
      reaches[j].add(child);
      reaches[child].forEach((further) => reaches[j].add(further));
    });
  }
  return reaches;
}
