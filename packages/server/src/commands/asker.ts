import { type RedisCounters, renderServers } from "@sluice/redis";
import { type CheckRequest, createLimiter, type PolicySet, parsePolicies, renderExplanation } from "sluice";
import { createRedisCounters } from "../counters/open-redis-counters.ts";
import { planCounters } from "../counters/plan-counters.ts";
import { loadPolicies } from "../policies/policy-files.ts";
import type { Settings } from "../settings/settings.ts";
import { type DecisionBody, decisionBody } from "../transports/http/decision-body.ts";
import { type ExplanationBody, explanationBody } from "../transports/http/explanation-body.ts";
import { askServer, refusalOf, type ServerOptions } from "./ask-server.ts";
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
  { server, token, config }: CheckOptions,
  settings: Settings | undefined,
  { stderr }: Terminal,
): Promise<Asker> {
  if (server !== undefined) return createRemoteAsker({ server, token });
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

/** A server, by its URL. */
function createRemoteAsker(server: ServerOptions): Asker {
  const explain = (body: CheckRequest, accept: string): Promise<string> =>
    askServer(server, "v1/explain", { body, accept });
  return {
    check: async (body) => {
      // Allowed, denied, or denied for want of counters: all of them are answers.
      const text = await askServer(server, "v1/check", { body, answers: [429, 503] });
      const decision = JSON.parse(text) as DecisionBody;
      if (typeof decision.allowed !== "boolean") throw new CommandError(refusalOf(200, text));
      return decision;
    },
    explain: async (request) => JSON.parse(await explain(request, "application/json")) as ExplanationBody,
    explainInText: (request) => explain(request, "text/plain"),
    close: async () => undefined,
  };
}
