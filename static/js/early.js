// Before anything is drawn: what only scripts can do may now be shown, and the server learns the zone that days are counted in.
document.documentElement.classList.add("js");
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;
if (localStorage.getItem("dominds:side") === "open") document.documentElement.dataset.side = "open"; // the details of a dialog
