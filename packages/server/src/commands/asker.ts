import { type RedisCounters, renderServers } from "@sluice/redis";
import { type CheckRequest, createLimiter, type PolicySet, parsePolicies, renderExplanation } from "sluice";
import { createRedisCounters } from "../counters/open-redis-counters.ts";
import { planCounters } from "../counters/plan-counters.ts";
import { loadPolicies } from "../policy-files.ts";
import type { Settings } from "../settings.ts";
import { type DecisionBody, decisionBody } from "../transports/http/decision-body.ts";
import type { ErrorBody } from "../transports/http/errors.ts";
import { type ExplanationBody, explanationBody } from "../transports/http/explanation-body.ts";
import type { CheckOptions } from "./check-options.ts";
import { CommandError, type Terminal } from "./terminal.ts";

/** Whom a command asks: a limiter of its own, or a server. Both answer in the words of the HTTP API. */
export interface Asker {
  check(request: CheckRequest): Promise<DecisionBody>;
  explain(request: CheckRequest): Promise<ExplanationBody>;
  explainInText(request: CheckRequest): Promise<string>;
  close(): Promise<void>;
}

/** Asks a server where one is named; else decides here, on the counters that settings name, or on fresh ones. */
export async function createAsker(
  { server, config }: CheckOptions,
  settings: Settings | undefined,
  { stderr }: Terminal,
): Promise<Asker> {
  if (server !== undefined) return createRemoteAsker(server);
  // Without a configuration there is the default policy alone.
  const policies = config === undefined ? parsePolicies({ policies: [] }) : (await loadPolicies(config)).policySet;
  const counters = settings === undefined ? undefined : await reachCounters(settings, stderr);
  return createLocalAsker(policies, counters);
}

/** A limiter in this process. */
function createLocalAsker(policies: PolicySet, counters: RedisCounters | undefined): Asker {
  const limiter = createLimiter({ policies, ...(counters === undefined ? undefined : { counters }) });
  return {
    close: () => limiter.close(),
    check: async (request) => decisionBody(await limiter.check(request)),
    explain: async (request) => explanationBody(await limiter.explain(request)),
    explainInText: async (request) => renderExplanation(await limiter.explain(request)),
  };
}

const reachWithinMs = 5_000;
/** Who asks by hand waits longer than a request does. */
const patienceMs = 1_000;

/** The counters that settings name, connected; undefined where they name none. */
async function reachCounters(settings: Settings, stderr: Terminal["stderr"]): Promise<RedisCounters | undefined> {
  const plan = planCounters(settings);
  if (plan.kind === "memory") return undefined;
  let last = "";
  const remember = ({ reason }: Readonly<Record<string, unknown>>): void => {
    last = reason === undefined ? last : ` (${reason})`;
  };
  const log = { debug() {}, info() {}, warn: remember, error: remember };
  const patient = { ...plan, deadlineMs: Math.max(plan.deadlineMs, patienceMs) };
  const counters = await createRedisCounters(patient, settings, log);
  const where = renderServers(plan.servers);
  try {
    await counters.connected(reachWithinMs);
  } catch {
    await counters.close();
    throw new CommandError(`the counters at ${where} cannot be reached within ${reachWithinMs / 1000} s${last}`);
  }
  stderr.write(`The counters are those at ${where}.\n`);
  return counters;
}

const answerWithinMs = 10_000;

/** A server, by its URL. */
function createRemoteAsker(server: string): Asker {
  const base = parseServer(server);

  async function ask(path: string, request: CheckRequest, accept: string): Promise<string> {
    const response = await fetch(new URL(path, base), {
      method: "POST",
      headers: { "content-type": "application/json", accept },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(answerWithinMs),
    }).catch((error: Error) => {
      throw new CommandError(
        `no answer from ${base}: ${reasonOf(error)}. Does a server run there? Start one with: sluice serve`,
      );
    });
    const text = await response.text();
    if (isAnswer(response, path, accept)) return text;
    throw new CommandError(refusalOf(response.status, text));
  }

  return {
    check: async (request) => {
      const text = await ask("v1/check", request, "application/json");
      const decision = JSON.parse(text) as DecisionBody;
      if (typeof decision.allowed !== "boolean") throw new CommandError(refusalOf(200, text));
      return decision;
    },
    explain: async (request) => JSON.parse(await ask("v1/explain", request, "application/json")) as ExplanationBody,
    explainInText: (request) => ask("v1/explain", request, "text/plain"),
    close: async () => undefined,
  };
}

function parseServer(server: string): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new CommandError(`--server is ${JSON.stringify(server)}; it should be a URL such as http://127.0.0.1:8080`);
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** Allowed, denied, or denied for want of counters: all of them are answers. */
function isAnswer({ status, headers }: Response, path: string, accept: string): boolean {
  const type = headers.get("content-type") ?? "";
  if (status === 200) return type.startsWith(accept);
  if (!type.startsWith("application/problem+json") || (status !== 429 && status !== 503)) return false;
  // Other questions have no answer without counters.
  return path === "v1/check";
}

function reasonOf(error: Error): string {
  if (error.name === "TimeoutError") return `none within ${answerWithinMs / 1000} s`;
  const { cause } = error as { cause?: { code?: string; message?: string } };
  return cause?.code === "ECONNREFUSED" ? "the connection was refused" : (cause?.message ?? error.message);
}

function refusalOf(status: number, text: string): string {
  const { detail, code, problems = [] } = parseRefusal(text);
  if (detail === undefined) return `the server answered ${status}, not as Sluice does: ${text.slice(0, 200)}`;
  if (problems.length === 0) return `the server refused (${code}): ${detail}`;
  return [`the server refused (${code}):`, ...problems.map((one) => `  ${one.field}: ${one.message}`)].join("\n");
}

function parseRefusal(text: string): Partial<ErrorBody> {
  try {
    return (JSON.parse(text) as Partial<ErrorBody> | null) ?? {};
  } catch {
    return {};
  }
}
