// @ts-check
// Texts of forms.

export const formSay = { json: "Value as JSON" };
