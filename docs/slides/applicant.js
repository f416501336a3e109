/* In a slide: keys that no control of the page needs move the slides (reveal's own
   postMessage interface). */
const MOVES = { ArrowLeft: "prev", PageUp: "prev", ArrowRight: "next", PageDown: "next" };
addEventListener("keydown", (event) => {
  const isNeeded = event.target.matches("input, select") && event.key.startsWith("Arrow");
  if (isNeeded || !(event.key in MOVES)) return;
  event.preventDefault();
  parent.postMessage(JSON.stringify({ method: MOVES[event.key] }), "*");
});
