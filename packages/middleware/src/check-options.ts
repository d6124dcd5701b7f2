import { headerGenerations, maxCost, type Problem, SluiceError } from "sluice";
import type { RateLimitOptions } from "./rate-limit-options.ts";

const functions = ["charge", "giveBack", "ip", "onDecision", "onError", "random", "refuse", "skip"] as const;

/**
 * Refuses options that mean nothing, naming each. Apps in plain JavaScript have no compiler to tell them, and every client
 * would be answered wrongly for it.
 */
export function checkOptions<Request, Answer>(options: RateLimitOptions<Request, Answer>): void {
  const problems: Problem[] = [];
  const expect = (
    path: readonly string[],
    value: unknown,
    holds: (value: unknown) => boolean,
    wanted: string,
  ): void => {
    if (value !== undefined && !holds(value)) problems.push({ path, message: `must be ${wanted}` });
  };
  for (const name of functions) expect([name], options[name], isFunction, "a function");
  for (const [name, read] of Object.entries(options.dimensions ?? {}))
    expect(["dimensions", name], read ?? null, isFunction, "a function");
  expect(["cost"], options.cost, isCost, `a whole number from 0 to ${maxCost}, or a function`);
  expect(["endpoint"], options.endpoint, isEndpoint, "route, path or a function");
  expect(["headers"], options.headers, isGenerations, `a list of ${headerGenerations.join(", ")}`);
  expect(["proxyHeader"], options.proxyHeader, isProxyHeader, "x-forwarded-for or forwarded");
  expect(["trustedProxies"], options.trustedProxies, isProxies, "a list of addresses of proxies, or their number");
  if (problems.length === 0) return;
  const message = problems.map((problem) => `${problem.path.join(".")} ${problem.message}`).join("; ");
  throw new SluiceError("invalid_policies", message, problems);
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}

function isCost(value: unknown): boolean {
  return isFunction(value) || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxCost);
}

function isEndpoint(value: unknown): boolean {
  return value === "route" || value === "path" || isFunction(value);
}

function isGenerations(value: unknown): boolean {
  const known: readonly unknown[] = headerGenerations;
  return Array.isArray(value) && value.every((one) => known.includes(one));
}

function isProxyHeader(value: unknown): boolean {
  return value === "x-forwarded-for" || value === "forwarded";
}

function isProxies(value: unknown): boolean {
  return typeof value === "number" || Array.isArray(value);
}
