// @ts-check
// Runs before the first paint: the chosen theme and the fact that scripts run. Nothing else belongs here.
"use strict";
(function () {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("shardbook:theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch (_error) {
    // Storage is denied (some browsers on file://): the system's theme it is.
  }
})();
