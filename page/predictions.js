/* The truth of exercises that need only a prediction, computed by the page's own model
   (model.js) for the same refused people that exercises/keys asks. Each is a generator: it
   yields now and then, so that a browser can draw, and returns a letter and what was seen. */

const mean = (some) => some.reduce((total, value) => total + value, 0) / some.length;
const two = (share) => share.toFixed(2);

/* Return how many of some people each single action helps, by changing a number alone and
   by acting on it; `step` in the units of the data. */
function misled(model, people, name, step) {
  const j = model.features.indexOf(name);
  const k = model.columns.indexOf(j);
  const acts = model.columns.map((column) => column === j);
  return people.map((x) => {
    const value = x[j] + step / model.std[j];
    const alone = x.map((before, i) => (i === j ? value : before));
    const values = model.columns.map((column, i) => (i === k ? value : x[column]));
    const acted = model.counterfactual(x, acts, values);
    return [alone, acted].map((profile) => model.logOdds(profile) >= 0);
  });
}

function* helpedOnGrid(model, people, scores) {
  const answers = [];
  for (const x of people) {
    answers.push(model.exact(x, scores));
    yield;
  }
  return answers;
}

/* What the search finds for 120 people; 08.2 and 08.4 need the same, which takes seconds. */
const searched = new WeakMap(); // by model
function* tables(model, people) {
  if (searched.has(model)) return searched.get(model);
  const weights = model.columns.map(() => 1);
  const results = [];
  for (const x of people.slice(0, 120)) {
    results.push(model.searched(x, weights));
    yield;
  }
  searched.set(model, results);
  return results;
}

const nActed = (row) => row.acts.filter(Boolean).length;

export const PREDICTIONS = {
  *"00.3"(model, people) {
    const some = people.slice(0, 200);
    const density = some.map((x) => model.logDensity(x));
    const middle = [...density].sort((a, b) => a - b)[Math.floor((some.length - 1) / 2)];
    const answers = yield* helpedOnGrid(model, some, [1, 1, 1, 1]);
    const share = (isOurs) =>
      mean(answers.filter((_, i) => isOurs(i)).map((answer) => +!!answer));
    const ordinary = share((i) => density[i] > middle);
    const rare = share((i) => density[i] <= middle);
    const letter = Math.abs(rare - ordinary) < 0.05 ? "C" : rare > ordinary ? "A" : "B";
    const text = `${two(rare)} of the rarer half are helped, ${two(ordinary)} of the other`;
    return [letter, `${text}: from the top, most ways lead down.`];
  },

  *"01.1"(model, people) {
    const pairs = misled(model, people, "loan_amount", -2);
    yield;
    const [alone, acted] = [0, 1].map((i) => mean(pairs.map((pair) => +pair[i])));
    const letter = acted > alone ? "B" : acted < alone ? "A" : "C";
    const text = `The changed number promises ${two(alone)}, acting brings ${two(acted)}`;
    return [letter, `${text}: the duration falls with the amount.`];
  },

  *"01.5"(model, people) {
    const counts = [];
    for (const step of [0.5, 1, 2, 4, 8]) {
      const pairs = misled(model, people, "income", step);
      counts.push(pairs.filter(([alone, acted]) => !alone && acted).length);
      yield;
    }
    const peak = counts.indexOf(Math.max(...counts));
    const letter = peak === counts.length - 1 ? "A" : peak === 0 ? "C" : "B";
    return [letter, `${counts.join(", ")} people at steps of 0.5, 1, 2, 4, 8.`];
  },

  *"04.1"(model, people) {
    const some = people.slice(0, 200);
    const shares = [];
    for (const k of model.columns.keys()) {
      const scores = model.columns.map((_, i) => (i === k ? 1 : 5));
      const answers = yield* helpedOnGrid(model, some, scores);
      shares.push(mean(answers.map((answer) => +!!answer)));
    }
    const names = model.columns.map((j) => model.features[j].replace("_", " "));
    const text = names.map((name, k) => `${name} ${two(shares[k])}`).join(", ");
    const letter = "ABCD"[shares.indexOf(Math.max(...shares))];
    return [letter, `Helped with one feature: ${text}.`];
  },

  *"05.6"(model, people) {
    const some = people.slice(0, 150);
    const [easy, hard] = [
      yield* helpedOnGrid(model, some, [1, 1, 1, 1]),
      yield* helpedOnGrid(model, some, [4, 4, 4, 4]),
    ];
    const acted = (answers) => answers.map((answer) => (answer ? nActed(answer) : 0));
    const isSame = easy.every((answer, i) => `${answer?.values}` === `${hard[i]?.values}`);
    const fewer = mean(acted(hard)) < mean(acted(easy));
    const letter = isSame ? "C" : fewer ? "A" : "B";
    return [letter, "All weights are seven times as large, so the cheapest stays the same."];
  },

  *"08.2"(model, people) {
    const results = yield* tables(model, people);
    const share = (most, slack) =>
      mean(
        results.map((table) => +table.some((r) => nActed(r) <= most && r.gain >= -slack)),
      );
    const [capped, free] = [share(2, 0.5), share(4, 0)];
    const letter = capped > free + 0.005 ? "A" : capped < free - 0.005 ? "B" : "C";
    const text = `${two(capped)} with two things and 0.5 nats, ${two(free)} with four and none`;
    return [letter, `${text}: a cap of two loses few, and slack wins back more.`];
  },

  *"08.4"(model, people) {
    const results = yield* tables(model, people);
    const only = [false, true, false, false];
    const stuck = results.filter((table) => !model.cheapest(table, only));
    const freed = [0, 2, 3].map(
      (k) => stuck.filter((table) => model.unlockedBy(table, only)[k] < Infinity).length,
    );
    const letter = "ABC"[freed.indexOf(Math.max(...freed))];
    const [amount, income, savings] = freed;
    return [
      letter,
      `Of ${stuck.length} people without recourse the amount frees ${amount}, income ` +
        `${income}, savings ${savings}. Savings follow from income.`,
    ];
  },
};
