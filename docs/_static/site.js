/* What is wider than the screen can be scrolled by keys. */
for (const wide of document.querySelectorAll("pre, .table-wrapper")) {
  if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
}
