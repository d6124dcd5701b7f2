import type { Window } from "../policy/policy.ts";
import { windowLabel } from "../policy/window-label.ts";
import type { Decision, LimitDecision } from "./decision.ts";
import { rememberPerLimit } from "./remember-per-window.ts";
import { findWaitMs, outageRetrySeconds, retryAfterSeconds, waitSeconds } from "./retry-after.ts";

/** Generations of header fields, oldest first. The IETF draft is still changing; each has its own renderer. */
export const headerGenerations = ["legacy", "draft6", "draft7", "draft11"] as const;

export type HeaderGeneration = (typeof headerGenerations)[number];

export interface RenderHeadersOptions {
  /**
   * Absent: `legacy` and `draft11`. draft7 and draft11 use the same field names: if both are named, draft11 is written.
   */
  readonly generations?: readonly HeaderGeneration[] | undefined;
  /** Source of the jitter of `Retry-After`, 0 … 1. Absent: no jitter. */
  readonly random?: (() => number) | undefined;
  /** Whether names are in lower case, as HTTP/2 and many servers require. Absent: in their usual case. */
  readonly lowerCase?: boolean | undefined;
  /**
   * Whether to leave `X-RateLimit-Policy` and `-Scope` out of answers that pass if draft11's `RateLimit-Policy` names
   * the same: every field costs time and bytes. Absent: false.
   */
  readonly brief?: boolean | undefined;
}

/** Every field that is ever written, by its content. */
const properNames = {
  retryAfter: "Retry-After",
  limit: "X-RateLimit-Limit",
  remaining: "X-RateLimit-Remaining",
  reset: "X-RateLimit-Reset",
  policy: "X-RateLimit-Policy",
  scope: "X-RateLimit-Scope",
  warning: "X-RateLimit-Warning",
  degraded: "X-RateLimit-Degraded",
  degradedReason: "X-RateLimit-Degraded-Reason",
  draft6Limit: "RateLimit-Limit",
  draft6Remaining: "RateLimit-Remaining",
  draft6Reset: "RateLimit-Reset",
  rateLimit: "RateLimit",
  rateLimitPolicy: "RateLimit-Policy",
} as const;

type FieldNames = Readonly<Record<keyof typeof properNames, string>>;

const lowerNames = Object.fromEntries(
  Object.entries(properNames).map(([key, name]) => [key, name.toLowerCase()]),
) as FieldNames;

/** A limit under its name in header fields and problem bodies. */
export interface NamedLimit {
  /**
   * `<policy>/<scope>`, plus `/<window>` if windows share that: printable ASCII, unique within the decision, and the
   * same for one window in every decision.
   */
  readonly name: string;
  readonly window: Window;
  /** The most the window ever holds. */
  readonly limit: number;
  readonly allowed: boolean;
  /** Whether the decision's own fields are this limit's. */
  readonly speaks: boolean;
}

const defaultGenerations: readonly HeaderGeneration[] = ["legacy", "draft11"];

/** Header lists stay short however many limits apply. */
const maxNamedLimits = 16;
const maxTextLength = 128;
/** The largest integer of structured fields (RFC 9651). */
const maxInteger = 999_999_999_999_999;

/** The header fields that show a client where it stands. No text from a policy or a request can start another field. */
export function renderHeaders(decision: Decision, options: RenderHeadersOptions = {}): Record<string, string> {
  const headers: Record<string, string> = {};
  const waitMs = findWaitMs(decision);
  const names = options.lowerCase === true ? lowerNames : properNames;
  if (waitMs !== undefined) {
    const seconds = isOutage(decision) ? outageRetrySeconds(options.random) : retryAfterSeconds(waitMs, options.random);
    headers[names.retryAfter] = String(seconds);
  }

  const { generations = defaultGenerations, brief = false } = options;
  const untilReset = secondsUntil(waitMs, decision.resetAfterMs, 0);
  if (generations.includes("legacy")) {
    renderLegacy(headers, names, decision);
    if (!(brief && decision.allowed && generations.includes("draft11"))) renderNames(headers, names, decision);
  }
  if (generations.includes("draft6")) renderDraft6(headers, names, decision, untilReset);
  if (generations.includes("draft11"))
    renderDraft11(headers, names, decision, secondsUntil(waitMs, decision.moreAfterMs, 1));
  else if (generations.includes("draft7")) renderDraft7(headers, names, decision, untilReset);
  return headers;
}

function renderLegacy(headers: Record<string, string>, names: FieldNames, decision: Decision): void {
  const { limit, remaining, scope, state, used, degraded } = decision;
  if (limit !== undefined) {
    const lasting = findLastingTexts(decision);
    headers[names.limit] = lasting?.limit ?? wholeNumber(limit);
    if (remaining !== undefined) headers[names.remaining] = wholeNumber(remaining);
    const resetAtMs = findResetAtMs(decision);
    if (resetAtMs !== undefined) headers[names.reset] = String(Math.ceil(resetAtMs / 1000));
    if (state === "warning" && used !== undefined && limit > 0) {
      const percent = wholeNumber(Math.min(100, (100 * used) / limit));
      headers[names.warning] = printableText(`${percent} % of ${scope ?? "the limit"} used`);
    }
  }
  if (degraded !== undefined) {
    headers[names.degraded] = "true";
    headers[names.degradedReason] = printableText(degraded);
  }
}

/** Names the deciding limit, for clients that know nothing newer. */
function renderNames(headers: Record<string, string>, names: FieldNames, decision: Decision): void {
  const { limit, policy, scope } = decision;
  if (limit === undefined) return;
  const lasting = findLastingTexts(decision);
  if (policy !== undefined) headers[names.policy] = lasting?.policy ?? printableText(policy);
  if (scope !== undefined) headers[names.scope] = lasting?.scope ?? printableText(scope);
}

function renderDraft6(
  headers: Record<string, string>,
  names: FieldNames,
  decision: Decision,
  untilReset: number | undefined,
): void {
  const { limit, remaining } = decision;
  if (limit === undefined || remaining === undefined) return;
  headers[names.draft6Limit] = wholeNumber(limit);
  headers[names.draft6Remaining] = wholeNumber(remaining);
  if (untilReset !== undefined) headers[names.draft6Reset] = String(untilReset);
}

function renderDraft7(
  headers: Record<string, string>,
  names: FieldNames,
  decision: Decision,
  untilReset: number | undefined,
): void {
  const { limit, remaining } = decision;
  if (limit === undefined || remaining === undefined) return;
  const reset = untilReset === undefined ? "" : `, reset=${untilReset}`;
  headers[names.rateLimit] = `limit=${wholeNumber(limit)}, remaining=${wholeNumber(remaining)}${reset}`;
  // This generation knows no policy without a window.
  const policies = nameLimits(decision)
    .filter((named) => windowSeconds(named) !== undefined)
    .map((named) => `${wholeNumber(named.limit)};w=${windowSeconds(named)}`);
  if (policies.length > 0) headers[names.rateLimitPolicy] = policies.join(", ");
}

function renderDraft11(
  headers: Record<string, string>,
  names: FieldNames,
  decision: Decision,
  untilMore: number | undefined,
): void {
  const lasting = findLastingTexts(decision) ?? describeLimits(nameLimits(decision));
  if (lasting === undefined) return;
  headers[names.rateLimitPolicy] = lasting.policies;
  // Uncounted values are left out: while counters are unavailable, only the policies are named.
  if (decision.remaining === undefined) return;
  const effectiveWindow = untilMore === undefined ? "" : `;t=${untilMore}`;
  // The item names one limit, so it says what that limit has left; `X-RateLimit-Remaining` is the least of all.
  const { limitRemaining, remaining } = decision;
  headers[names.rateLimit] = `${lasting.speaker};r=${wholeNumber(limitRemaining ?? remaining)}${effectiveWindow}`;
}

/** `RateLimit-Policy` and the name of the deciding limit, as draft 11 writes them. */
function describeLimits(limits: readonly NamedLimit[]): Pick<LastingTexts, "policies" | "speaker"> | undefined {
  const speaker = limits.find((named) => named.speaks);
  if (speaker === undefined) return undefined;
  const policies = limits.map((named) => {
    const seconds = windowSeconds(named);
    return `${quotedString(named.name)};q=${wholeNumber(named.limit)}${seconds === undefined ? "" : `;w=${seconds}`}`;
  });
  return { policies: policies.join(", "), speaker: quotedString(speaker.name) };
}

/** The texts that are the same in every decision by one window. */
interface LastingTexts {
  readonly limit: string;
  readonly policy: string;
  readonly scope: string;
  readonly policies: string;
  readonly speaker: string;
}

/** Headers go out with every answer, and most of their text never changes: written once, they cost half. */
const lastingTexts = rememberPerLimit((decision): LastingTexts | undefined => {
  const { policy, scope, limit } = decision;
  const described = describeLimits(nameLimits(decision));
  if (described === undefined || limit === undefined) return undefined;
  return {
    ...described,
    limit: wholeNumber(limit),
    policy: printableText(policy ?? ""),
    scope: printableText(scope ?? ""),
  };
});

/** Undefined if no limit decided, or if several did. */
function findLastingTexts(decision: Decision): LastingTexts | undefined {
  const { window, limit, limits } = decision;
  if (window === undefined || limit === undefined || limits !== undefined) return undefined;
  return lastingTexts(decision, window);
}

/**
 * Every limit in the decision that can deny, in order: all of them if `details` asked for them, else the deciding one.
 * Empty if no limit applied.
 */
export function nameLimits(decision: Decision): readonly NamedLimit[] {
  const { policy = "", scope = "", window, limit, allowed } = decision;
  if (window === undefined || limit === undefined) return [];
  const enforced = (decision.limits ?? []).filter((one) => !one.shadow);
  const own: TellingFields = { policy, scope, window, limit, allowed };
  const speaker = enforced.find((one) => speaksFor(one, decision)) ?? own;
  let listed: readonly TellingFields[] = enforced.slice(0, maxNamedLimits);
  if (!listed.includes(speaker)) listed = [...listed.slice(0, maxNamedLimits - 1), speaker];

  const names = new Set<string>();
  return listed.map((one) => {
    const name = findFreeName(names, renderName(one));
    names.add(name);
    return { name, window: one.window, limit: one.limit, allowed: one.allowed, speaks: one === speaker };
  });
}

/** The window's label is never cut off: it is what distinguishes two names. */
function renderName({ policy, scope, window }: TellingFields): string {
  const label = windowLabel(window);
  const name = printableText(`${policy}/${scope}`);
  return label === undefined ? name : `${name}/${printableText(label)}`;
}

type TellingFields = Pick<LimitDecision, "policy" | "scope" | "window" | "limit" | "allowed">;

function speaksFor(one: LimitDecision, decision: Decision): boolean {
  return (
    one.policy === decision.policy &&
    one.scope === decision.scope &&
    one.limit === decision.limit &&
    one.remaining === decision.limitRemaining &&
    one.used === decision.used &&
    one.allowed === decision.allowed
  );
}

function findFreeName(taken: ReadonlySet<string>, wanted: string): string {
  let name = wanted;
  for (let ordinal = 2; taken.has(name); ordinal++) name = `${wanted}#${ordinal}`;
  return name;
}

/** Whether counters were unavailable, and `on_failure` decided. */
function isOutage({ reason, degraded }: Decision): boolean {
  return reason === "degraded" && degraded !== "kill_switch";
}

/**
 * Seconds for `reset` and `t` of the drafts. For a denial, until the same request passes. Otherwise `reset` of drafts 6
 * and 7 is when the counter is as good as new, and `t` of draft 11 when more than `r` is available.
 */
function secondsUntil(waitMs: number | undefined, afterMs: number | undefined, least: number): number | undefined {
  if (waitMs !== undefined) return waitSeconds(waitMs);
  if (afterMs === undefined || !Number.isFinite(afterMs)) return undefined;
  return Math.min(maxInteger, Math.max(least, Math.ceil(afterMs / 1000)));
}

/** When the counter is as good as new, and never before a denied request passes. */
function findResetAtMs(decision: Decision): number | undefined {
  const { resetAtMs, resetAfterMs } = decision;
  if (resetAtMs === undefined || !Number.isFinite(resetAtMs)) return undefined;
  const waitMs = findWaitMs(decision);
  return waitMs === undefined || resetAfterMs === undefined
    ? resetAtMs
    : Math.max(resetAtMs, resetAtMs - resetAfterMs + waitMs);
}

/**
 * Whole seconds in which a full window comes back: per × holds ÷ limit, which is `per` if the burst equals the limit. A
 * client that spends `q` every `w` is within the limit. Undefined if nothing comes back.
 */
function windowSeconds({ window, limit: holds }: NamedLimit): number | undefined {
  const { per } = window;
  if (per.kind === "never") return undefined;
  const perSeconds = per.kind === "ms" ? per.ms / 1000 : per.unit === "day" ? 86_400 : 2_592_000;
  const seconds = holds === window.limit ? perSeconds : (perSeconds * holds) / window.limit;
  if (!Number.isFinite(seconds)) return undefined;
  // The division may leave a whole number slightly above itself.
  return Math.min(maxInteger, Math.max(1, Math.ceil(seconds - 1e-9)));
}

function wholeNumber(value: number): string {
  return String(Math.min(maxInteger, Math.max(0, Math.floor(value)) || 0));
}

/** A structured-field string (RFC 9651) from text that is printable already. */
function quotedString(printable: string): string {
  return `"${printable.replace(/["\\]/g, "\\$&")}"`;
}

/** Printable ASCII: everything else, line ends included, is percent-encoded. */
function printableText(text: string): string {
  const start = text.length > maxTextLength ? text.slice(0, maxTextLength) : text;
  if (/^[\x20-\x7e]*$/.test(start)) return start;
  const encoded = start.replace(/\p{Surrogate}/gu, "\ufffd").replace(/[^\x20-\x7e]+/gu, encodeURIComponent);
  return encoded.slice(0, maxTextLength);
}
