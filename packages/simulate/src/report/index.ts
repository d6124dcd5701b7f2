/** What a simulation found, for people and for pipelines. */
export { type FailCondition, type FailVerdict, judge, parseFailIf } from "./fail-if.ts";
export { listIdentity } from "./list-identity.ts";
export { type HtmlOptions, renderHtml } from "./render-html.ts";
export { renderCount, renderInstant, renderShare } from "./render-quantity.ts";
