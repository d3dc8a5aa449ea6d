// Before anything is drawn: what only scripts can do may now be shown.
document.documentElement.classList.add("js");
