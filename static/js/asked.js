// The banner about an agent's question is one line as long as the question's card in the conversation is in sight.

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
