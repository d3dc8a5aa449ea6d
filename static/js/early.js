// Before anything is drawn: what only scripts can do may now be shown, and the server learns the zone that days are counted in.
document.documentElement.classList.add("js");
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;
