import { type DecisionBody, decision, type ExplanationBody, explanation } from "@sluice/protocol/http";
import { type RedisCounters, renderServers } from "@sluice/redis";
import { type CheckRequest, createLimiter, type PolicySet, parsePolicies, printable, renderExplanation } from "sluice";
import { createRedisCounters } from "../data-plane/counters/open-redis-counters.ts";
import { planCounters } from "../data-plane/counters/plan-counters.ts";
import { loadPolicies } from "../data-plane/policy-files/policy-files.ts";
import type { Settings } from "../settings/settings.ts";
import { askServer, flagOf, parseServer, refusalOf, type ServerOptions } from "./ask-server.ts";
import { keepConnection } from "./send-request.ts";
import { CommandError, type Terminal } from "./terminal.ts";

/** What a command asks: a limiter in this process, or a server. Both answer in the words of the HTTP API. */
export interface Asker {
  /** Says what decides, where that is not a server: an answer of fresh counters is easily taken for the server's. */
  readonly notice: string | undefined;
  check(request: CheckRequest): Promise<DecisionBody>;
  explain(request: CheckRequest): Promise<ExplanationBody>;
  explainInText(request: CheckRequest): Promise<string>;
  close(): Promise<void>;
}

/** What decides. */
export type AskedOf =
  | { readonly kind: "server"; readonly server: ServerOptions }
  /** `settings` name the servers that hold counters. */
  | { readonly kind: "local"; readonly config: string | undefined; readonly settings: Settings };

export async function createAsker(asked: AskedOf): Promise<Asker> {
  if (asked.kind === "server") return createRemoteAsker(asked.server);
  const { config, settings } = asked;
  // Without a configuration there is the default policy alone.
  const policies = config === undefined ? parsePolicies({ policies: [] }) : (await loadPolicies(config)).policySet;
  const reached = await reachCounters(settings);
  const by = config === undefined ? "the default policy, because no --config is given" : `the policies in ${config}`;
  const on = reached === undefined ? "counters that start empty" : `the counters at ${reached.where}`;
  return createLocalAsker(policies, reached?.counters, `Decided in this process, not by a server: ${by}, on ${on}.`);
}

/** A limiter in this process. */
function createLocalAsker(policies: PolicySet, counters: RedisCounters | undefined, notice: string): Asker {
  const limiter = createLimiter({ policies, ...(counters === undefined ? undefined : { counters }) });
  return {
    notice,
    close: () => limiter.close(),
    check: async (request) => decision.render(await limiter.check(request)),
    explain: async (request) => explanation.render(await limiter.explain(request)),
    explainInText: async (request) => renderExplanation(await limiter.explain(request)),
  };
}

const reachWithinMs = 5_000;
/** Who asks by hand waits longer than a request does. */
const patienceMs = 1_000;

/** The counters that settings name, connected; undefined where they name none. */
async function reachCounters(
  settings: Settings,
): Promise<{ readonly counters: RedisCounters; readonly where: string } | undefined> {
  const plan = planCounters(settings);
  if (plan.kind === "memory") return undefined;
  let last = "";
  const remember = (_event: string, { reason }: Readonly<Record<string, unknown>> = {}): void => {
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
  return { counters, where };
}

/** A server, by its URL. */
function createRemoteAsker(options: ServerOptions): Asker {
  const agent = keepConnection(parseServer(options.server, flagOf(options.source ?? "--server")));
  const server = { ...options, agent };
  const explain = (body: CheckRequest, accept: string): Promise<string> =>
    askServer(server, "v1/explain", { body, accept });
  return {
    notice: undefined,
    check: async (body) => {
      // Allowed, denied, or denied for want of counters: all of them are answers.
      const text = await askServer(server, "v1/check", { body, answers: [429, 503] });
      const decision = JSON.parse(text) as DecisionBody;
      if (typeof decision.allowed !== "boolean") throw new CommandError(refusalOf(200, text));
      return decision;
    },
    explain: async (request) => JSON.parse(await explain(request, "application/json")) as ExplanationBody,
    explainInText: (request) => explain(request, "text/plain"),
    close: async () => agent.destroy(),
  };
}

/** Writes what decides as the first line: before the answer, or beside it where the answer is JSON. */
export function writeNotice({ notice }: Asker, json: boolean, { stdout, stderr }: Terminal): void {
  if (notice !== undefined) (json ? stderr : stdout).write(`${printable(notice)}\n`);
}
