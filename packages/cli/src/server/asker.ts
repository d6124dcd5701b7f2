import { keepConnection } from "@sluice/client/internal";
import { type DecisionBody, decision, type ExplanationBody, explanation } from "@sluice/protocol/http";
import {
  type CheckRequest,
  type CounterStore,
  createLimiter,
  MemoryCounters,
  type PolicySet,
  parsePolicies,
  renderExplanation,
} from "sluice";
import { printable } from "sluice/internal";
import { CommandError, type Terminal } from "../terminal/terminal.ts";
import { askServer, parseServer, renderRefusal, type ServerOptions, serverFlag } from "./ask-server.ts";

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
export type Decider = { readonly kind: "server"; readonly server: ServerOptions } | LocalDecider;

export interface LocalDecider {
  readonly kind: "local";
  readonly config: string | undefined;
  /** What the policy file or folder says. */
  loadPolicies(path: string): Promise<PolicySet>;
  /** Counters on servers; undefined if none are named. */
  openCounters(): Promise<OpenedCounters | undefined>;
}

/** Counters that `@sluice/server` opened, and the servers that they are on. */
export interface OpenedCounters {
  readonly counters: CounterStore;
  readonly where: string;
}

export async function createAsker(decider: Decider): Promise<Asker> {
  if (decider.kind === "server") return createRemoteAsker(decider.server);
  const { config } = decider;
  // Without a configuration there is the default policy alone.
  const policies = config === undefined ? parsePolicies({ policies: [] }) : await decider.loadPolicies(config);
  const opened = await decider.openCounters();
  const by = config === undefined ? "the default policy, because no --config is given" : `the policies in ${config}`;
  const on = opened === undefined ? "counters that start empty" : `the counters at ${opened.where}`;
  return createLocalAsker(policies, opened?.counters, `Decided in this process, not by a server: ${by}, on ${on}.`);
}

/** A limiter in this process. */
function createLocalAsker(policies: PolicySet, counters: CounterStore | undefined, notice: string): Asker {
  // Without servers, counters start empty, whatever the policies ask for.
  const limiter = createLimiter({ policies, counters: counters ?? new MemoryCounters({ strong: true }) });
  return {
    notice,
    close: () => limiter.close(),
    check: async (request) => decision.render(await limiter.check(request)),
    explain: async (request) => explanation.render(await limiter.explain(request)),
    explainInText: async (request) => renderExplanation(await limiter.explain(request)),
  };
}

/** A server, by its URL. */
function createRemoteAsker(options: ServerOptions): Asker {
  const agent = keepConnection(parseServer(options.server, serverFlag(options.source ?? "--server")));
  const server = { ...options, agent };
  const explain = (body: CheckRequest, accept: string): Promise<string> =>
    askServer(server, "v1/explain", { body, accept });
  return {
    notice: undefined,
    check: async (body) => {
      // Allowed, denied, or denied for want of counters: all of them are answers.
      const text = await askServer(server, "v1/check", { body, answers: [429, 503] });
      const decision = JSON.parse(text) as DecisionBody;
      if (typeof decision.allowed !== "boolean") throw new CommandError(renderRefusal(200, text));
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
