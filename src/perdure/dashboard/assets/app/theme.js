// @ts-check
// Sets the chosen theme before the first paint. A classic script: a module would run after it.
try {
  const theme = localStorage.getItem("perdure.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* a browser that keeps nothing has the theme of its system */ }
