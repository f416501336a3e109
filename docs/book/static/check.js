/* In the book, answers to exercises are compared with the stored ones, as exercises/checking.py
   does; only functions need Python. ANSWERS comes from conf.py. */

const PERCENT = "Give a share between 0 and 1, no percent.";

/* Return a letter, a list of names or a list of numbers; null for what is none. */
function read(answer, truth) {
  if (typeof truth === "string") return answer.trim().toUpperCase() || null;
  const parts = answer.split(/[,;\s]+/).filter(Boolean);
  if (typeof [truth].flat(2)[0] === "string") {
    return parts.map((name) => name.toLowerCase());
  }
  const values = parts.map(Number);
  const n = [truth].flat(2).length;
  return values.length === n && !values.some(Number.isNaN) ? values : null;
}

function agree(given, wanted, within) {
  if (typeof wanted === "string") return given === wanted;
  const values = [wanted].flat(2);
  return given.every((value, i) => Math.abs(value - values[i]) <= within + 1e-9);
}

function hintOf(given, key, within) {
  const { truth, mistakes = [], places = [] } = key;
  if (typeof [truth].flat(2)[0] === "string" && typeof truth !== "string") {
    const differs = (name) => given.includes(name) !== truth.includes(name);
    const named = mistakes.filter(([name]) => differs(name)).map(([, hint]) => hint);
    return [...new Set(named)].join(" ");
  }
  const known = mistakes.find(([wrong]) => agree(given, wrong, within));
  if (known) return known[1];
  const hints = places
    .map((pairs, i) => [pairs, [given[i]], truth[i]])
    .filter(([, value, right]) => !agree(value, right, within))
    .map(([pairs, value]) => pairs.find(([wrong]) => agree(value, wrong, within))?.[1]);
  return hints.every(Boolean) ? [...new Set(hints)].join(" ") : "";
}

/* Return what is said of an answer, a text, by a stored key. */
function judged(answer, key) {
  const { truth, because, within = 0, is_share: isShare } = key;
  const given = read(answer, truth);
  if (given === null) {
    const n = [truth].flat(2).length;
    return `Not understood: expected ${n} number${n > 1 ? "s" : ""}.`;
  }
  const isNamed = Array.isArray(truth) && typeof truth[0] === "string";
  const isRight = isNamed
    ? new Set(given).size === truth.length && truth.every((name) => given.includes(name))
    : agree(given, truth, within);
  if (isRight) return `Right. ${because}`;
  let hint = hintOf(given, key, within);
  if (!hint && isShare && given[0] > 1) {
    const share = [given[0] / 100];
    const near = Math.max(within, 0.005);
    hint = hintOf(share, key, near);
    hint = agree(share, truth, near) ? PERCENT : hint && `Two mistakes. ${hint} ${PERCENT}`;
  }
  return `Not yet. ${hint || "Look at the question again."}`;
}

/* Put a field for an answer below the text of an exercise. */
function ask(section, name, key) {
  const form = document.createElement("form");
  form.className = "answer";
  const letters =
    typeof key.truth === "string"
      ? [key.truth, ...(key.mistakes ?? []).map(([letter]) => letter)].sort()
      : [];
  const field = letters.length
    ? letters
        .map((l) => `<label><input type="radio" name="${name}" value="${l}"> ${l}</label>`)
        .join("")
    : `<input type="text" name="${name}" aria-label="Your answer to ${name}">`;
  form.innerHTML =
    `<fieldset aria-label="Your answer to ${name}">${field}` +
    '<button type="submit">Check</button></fieldset><p role="status"></p>';
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const answer = new FormData(form).get(name)?.trim();
    const status = form.querySelector("[role=status]");
    status.textContent = answer ? judged(answer, key) : "Not answered yet.";
  });
  section.append(form);
}

globalThis.addEventListener?.("DOMContentLoaded", () => {
  for (const heading of document.querySelectorAll("section > h2")) {
    const name = heading.textContent.trim().split(" ")[0];
    if (ANSWERS[name]) ask(heading.parentElement, name, ANSWERS[name]);
  }
});
