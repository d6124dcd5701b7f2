import type { Problem } from "sluice";
import {
  aFunction,
  algorithms,
  anObject,
  aText,
  checkOptions as checkForms,
  headerGenerations,
  maxCost,
  type OptionForm,
  type OptionForms,
  oneOf,
  optionsError,
} from "sluice/internal";
import type { RateLimitOptions } from "./rate-limit-options.ts";

const forms: OptionForms<RateLimitOptions<unknown, unknown>> = {
  // Checked when the one-line limit is created.
  name: aText,
  counters: undefined,
  algorithm: oneOf(algorithms),
  onFailure: oneOf(["open", "closed", "local"]),
  blockFor: aText,
  dimensions: anObject,
  cost: { holds: isCost, wanted: `a whole number from 0 to ${maxCost}, or a function` },
  hold: { holds: isHeld, wanted: "a whole number from 1, { amount }, { estimate } or a function" },
  skip: aFunction,
  charge: aFunction,
  giveBack: aFunction,
  trustedProxies: { holds: isProxies, wanted: "a list of proxy addresses, or the number of proxies" },
  proxyHeader: oneOf(["x-forwarded-for", "forwarded"]),
  ip: aFunction,
  endpoint: { holds: isEndpoint, wanted: "route, path or a function" },
  headers: { holds: isGenerations, wanted: `a list of ${headerGenerations.join(", ")}` },
  refuse: aFunction,
  domain: aText,
  policies: { holds: isTexts, wanted: "a list of policy ids" },
  onDecision: aFunction,
  onError: aFunction,
  random: aFunction,
};

const inLimits = 'the limits come first, as text: rateLimit("100/15m")';
const inGiveBack = "write giveBack: (request, { status }) => …";
const inRefuse = "write refuse: (problem) => ({ status, body })";
const inHeaders = 'write headers: ["legacy"] or ["draft6"]; [] sends only Retry-After';

/** Option names of the libraries that Sluice replaces, and what to write here. */
const foreign = {
  windowMs: inLimits,
  limit: inLimits,
  max: inLimits,
  timeWindow: inLimits,
  ttl: inLimits,
  points: inLimits,
  duration: inLimits,
  limits: inLimits,
  by: 'write limit("100/m").by("user") instead of the text',
  keyGenerator: 'write dimensions: { user: (request) => … } and count by it: limit("100/m").by("user")',
  handler: inRefuse,
  message: inRefuse,
  statusCode: inRefuse,
  errorResponseBuilder: inRefuse,
  standardHeaders: inHeaders,
  legacyHeaders: inHeaders,
  store: "write counters: redis(url)",
  redis: "write counters: redis(url), with redis from @sluice/redis",
  skipSuccessfulRequests: inGiveBack,
  skipFailedRequests: inGiveBack,
  passOnStoreError: 'write onFailure: "open" or "closed"',
  skipOnError: 'write onFailure: "open" or "closed"',
  allowList: "write skip: (request) => …",
  trustProxy: "write trustedProxies: 1, or their addresses",
};

/** An adapter's additional options, by name. */
export type OwnForms = Readonly<Record<string, OptionForm>>;

/**
 * Refuses unknown or wrong options, naming each. Apps in plain JavaScript have no compiler to catch them, and every
 * client would get wrong answers.
 */
export function checkOptions<Request, Answer>(options: RateLimitOptions<Request, Answer>, own: OwnForms = {}): void {
  // Only the app knows the type of its requests; no form depends on it.
  checkForms(
    options as RateLimitOptions<unknown, unknown>,
    { ...forms, ...own },
    {
      name: "rateLimit",
      code: "invalid_policies",
      foreign,
    },
  );
  const problems: Problem[] = [];
  for (const [name, read] of Object.entries(options.dimensions ?? {})) {
    if (aFunction.holds(read)) continue;
    problems.push({ path: ["dimensions", name], message: `must be a function, as in (request) => request.${name}` });
  }
  for (const name of ["cost", "giveBack"] as const) {
    if (options.hold === undefined || options[name] === undefined) continue;
    problems.push({ path: [name], message: "cannot be combined with hold, which takes and gives back itself" });
  }
  if (problems.length > 0) throw optionsError("invalid_policies", problems);
}

/** Checks the options of an adapter that has additional ones; `createGate` knows only the options all adapters share. */
export function checkedOptions<Options extends object>(options: Options, own: OwnForms): Options {
  checkOptions(options, own);
  return options;
}

function isCost(value: unknown): boolean {
  return aFunction.holds(value) || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxCost);
}

function isHeld(value: unknown): boolean {
  return aFunction.holds(value) || anObject.holds(value) || (Number.isInteger(value) && (value as number) >= 1);
}

function isEndpoint(value: unknown): boolean {
  return value === "route" || value === "path" || aFunction.holds(value);
}

function isGenerations(value: unknown): boolean {
  const known: readonly unknown[] = headerGenerations;
  return Array.isArray(value) && value.every((one) => known.includes(one));
}

function isProxies(value: unknown): boolean {
  return typeof value === "number" || Array.isArray(value);
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
