// Before anything is drawn: what only scripts can do may now be shown, the server learns the zone of times and days,
// and the page wears what was chosen. A page that knows no person wears the theme of the last one that did.
const root = document.documentElement;
root.classList.add("js");
document.cookie = `zone=${root.dataset.zone || Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;
if (root.dataset.theme) localStorage.setItem("dominds:theme", root.dataset.theme);
else root.dataset.theme = localStorage.getItem("dominds:theme") ?? "system";
root.dataset.size = localStorage.getItem("dominds:size") ?? "normal";
if (localStorage.getItem("dominds:side") === "open") root.dataset.side = "open"; // the details of a dialog
