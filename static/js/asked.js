// The banner of an agent's question says it in one line while its card in the conversation can be seen.

export function startAsked(scroller) {
  let card = null;
  const showWhole = (whole) => document.querySelector(".foot").classList.toggle("card-away", whole);
  const seen = new IntersectionObserver((changes) => showWhole(!changes.at(-1).isIntersecting), { root: scroller });
  const watch = () => {
    const name = document.querySelector("#banner [data-card]")?.dataset.card;
    const now = name ? document.getElementById(name) : null;
    if (now && now === card) return;
    card = now;
    seen.disconnect();
    if (card) seen.observe(card);
    else showWhole(true);
  };
  document.addEventListener("dominds:placed", watch);
  watch();
}
