import { algorithms, headerGenerations, maxCost, type Problem } from "sluice";
import {
  aFunction,
  anObject,
  aText,
  checkOptions as checkForms,
  type OptionForm,
  type OptionForms,
  oneOf,
  optionsError,
} from "sluice/store";
import type { RateLimitOptions } from "./rate-limit-options.ts";

const forms: OptionForms<RateLimitOptions<unknown, unknown>> = {
  // Limits in one line check theirs.
  name: aText,
  counters: undefined,
  algorithm: oneOf(algorithms),
  onFailure: oneOf(["open", "closed", "local"]),
  blockFor: aText,
  dimensions: anObject,
  cost: { holds: isCost, wanted: `a whole number from 0 to ${maxCost}, or a function` },
  skip: aFunction,
  charge: aFunction,
  giveBack: aFunction,
  trustedProxies: { holds: isProxies, wanted: "a list of addresses of proxies, or their number" },
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
const inHeaders = 'write headers: ["legacy"] or ["draft6"]; [] sends none but Retry-After';

/** What the libraries that Sluice replaces call it. */
const foreign = {
  windowMs: inLimits,
  limit: inLimits,
  max: inLimits,
  timeWindow: inLimits,
  ttl: inLimits,
  points: inLimits,
  duration: inLimits,
  limits: inLimits,
  by: 'write limit("100/m").by("user") in place of the text',
  keyGenerator: 'write dimensions: { user: (request) => … } and count by it, as in limit("100/m").by("user")',
  handler: inRefuse,
  message: inRefuse,
  statusCode: inRefuse,
  errorResponseBuilder: inRefuse,
  standardHeaders: inHeaders,
  legacyHeaders: inHeaders,
  store: "counters is where counters live: counters: redis(url)",
  redis: "write counters: redis(url), with redis of @sluice/redis",
  skipSuccessfulRequests: inGiveBack,
  skipFailedRequests: inGiveBack,
  passOnStoreError: 'write onFailure: "open" or "closed"',
  skipOnError: 'write onFailure: "open" or "closed"',
  allowList: "write skip: (request) => …",
  trustProxy: "write trustedProxies: 1, or their addresses",
};

/** Further options of an adapter, by their names. */
export type OwnForms = Readonly<Record<string, OptionForm>>;

/**
 * Refuses options that mean nothing, naming each. Apps in plain JavaScript have no compiler to tell them, and every client
 * would be answered wrongly for it.
 */
export function checkOptions<Request, Answer>(options: RateLimitOptions<Request, Answer>, own: OwnForms = {}): void {
  // What a request is, only the app knows; no form depends on it.
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
  if (problems.length > 0) throw optionsError("invalid_policies", problems);
}

/** Options of an adapter that has further ones, of these forms; `createGate` knows only those that all have. */
export function checkedOptions<Options extends object>(options: Options, own: OwnForms): Options {
  checkOptions(options, own);
  return options;
}

function isCost(value: unknown): boolean {
  return aFunction.holds(value) || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxCost);
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
