// @ts-check
// Texts of what happened to a task.

export const historySay = {
  none: "Nothing has happened yet",
  /** @param {any} author */
  author: (author) => [author?.user, author?.via && `via ${author.via}`, author?.host && `on ${author.host}`, author?.pid && `pid ${author.pid}`].filter(Boolean).join(" "),
};
