/* Search shows excerpts: of the whole page, since Sphinx asks for sections by names that
   begin with a digit, which no selector may. From disk, where a browser may not read other
   pages, they come from texts that are loaded when they are first asked for. */
addEventListener("DOMContentLoaded", () => {
  const textOf = Search.htmlToText;
  Search.htmlToText = (page) => textOf(page);
});
if (location.protocol === "file:") {
  let texts;
  const loaded = () =>
    new Promise((resolve) => {
      const script = document.createElement("script");
      script.src = "_static/texts.js";
      script.addEventListener("load", () => resolve(TEXTS));
      document.head.append(script);
    });
  window.fetch = async (address) => {
    const name = String(address).replace(/^\.\//, "").split(/[?#]/)[0];
    const text = (await (texts ??= loaded()))[name] ?? "";
    return new Response(`<div role="main">${text}</div>`);
  };
}
