/* A browser may not read other pages from disk. Search shows its excerpts all the same, from
   their texts, which are loaded when they are first asked for. */
if (location.protocol === "file:") {
  const texts = new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = "_static/texts.js";
    script.addEventListener("load", () => resolve(TEXTS));
    document.head.append(script);
  });
  window.fetch = async (address) => {
    const name = String(address).split("#")[0].split("?")[0];
    const text = (await texts)[name] ?? "";
    return new Response(`<div role="main">${text}</div>`);
  };
}
