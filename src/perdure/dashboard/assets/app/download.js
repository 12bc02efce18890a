// @ts-check
// Give the person a file that is made here.

/** @param {string} name @param {string} type @param {BlobPart[]} parts */
export function saveFile(name, type, parts) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // the browser has begun to read it by then
}
