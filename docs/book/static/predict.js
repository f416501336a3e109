/* In the book, exercises that need only a prediction can be answered: it is locked once,
   then the truth is computed, for the refused people of the exercise, by the page's model.
   `applicantModel` and PREDICTIONS come from conf.py. */

addEventListener("DOMContentLoaded", () => {
  const model = applicantModel();
  const people = model.applicants.slice(1); // the first is the one of the notebooks
  for (const heading of document.querySelectorAll("section > h2")) {
    const name = heading.textContent.trim().split(" ")[0];
    if (PREDICTIONS[name]) ask(heading.parentElement, name, model, people);
  }
});

function ask(section, name, model, people) {
  const options = [...section.querySelectorAll("li")].filter((own) =>
    /^[A-D]\b/.test(own.textContent.trim()),
  );
  const box = document.createElement("form");
  box.className = "predict";
  box.innerHTML =
    "<p><b>Predict here.</b> Nothing to install. Once locked, it stays.</p>" +
    `<fieldset aria-label="Your prediction of ${name}">` +
    options
      .map((own) => own.textContent.trim()[0])
      .map(
        (letter) =>
          `<label><input type="radio" name="p${name}" value="${letter}"> ${letter}</label>`,
      )
      .join("") +
    '<button type="submit">Lock it</button></fieldset><p role="status"></p>';
  options.at(-1).closest("ul").after(box);
  const said = box.querySelector("[role=status]");
  const key = `prediction ${name}`;

  function locked(letter) {
    box.querySelector(`[value="${letter}"]`).checked = true;
    box.querySelector("fieldset").disabled = true;
    said.textContent = "Asking them …";
    const asked = PREDICTIONS[name](model, people);
    const go = () => {
      const since = performance.now();
      let piece = asked.next();
      while (!piece.done && performance.now() - since < 30) piece = asked.next();
      if (!piece.done) {
        setTimeout(go);
        return;
      }
      const [truth, because] = piece.value;
      const verdict = letter === truth ? "As you said" : `You said ${letter}`;
      said.textContent = `${verdict}: it is ${truth}. ${because}`;
    };
    setTimeout(go);
  }

  box.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = box.querySelector("input:checked");
    if (!chosen) {
      said.textContent = "Choose a letter first.";
      return;
    }
    remember(key, chosen.value);
    locked(chosen.value);
  });
  const before = remembered(key);
  if (before) locked(before);
}

/* A browser may forbid a page from disk to remember; then it is locked for this visit. */
function remember(key, letter) {
  try {
    localStorage.setItem(key, letter);
  } catch {}
}

function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
