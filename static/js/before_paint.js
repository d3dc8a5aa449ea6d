// Before anything is drawn: show what works only with scripts, tell the server the time zone by a cookie, and apply the
// chosen theme and text size. A page without a person, such as the login, has the theme of the last page with one.
const root = document.documentElement;
root.classList.add("js");
document.cookie = `zone=${root.dataset.zone || Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;
if (root.dataset.theme) localStorage.setItem("dominds:theme", root.dataset.theme);
else root.dataset.theme = localStorage.getItem("dominds:theme") ?? "system";
root.dataset.size = localStorage.getItem("dominds:size") ?? "normal";
if (localStorage.getItem("dominds:side") === "open") root.dataset.side = "open"; // the details beside a dialog
