import { type CheckRequest, createLimiter, parsePolicies, renderExplanation } from "sluice";
import { loadPolicies } from "../policy-files.ts";
import { type DecisionBody, decisionBody } from "../transports/http/decision-body.ts";
import type { ErrorBody } from "../transports/http/errors.ts";
import { type ExplanationBody, explanationBody } from "../transports/http/explanation-body.ts";
import { CommandError } from "./terminal.ts";

/** Whom a command asks: a limiter of its own, or a server. Both answer in the words of the HTTP API. */
export interface Asker {
  check(request: CheckRequest): Promise<DecisionBody>;
  explain(request: CheckRequest): Promise<ExplanationBody>;
  explainInText(request: CheckRequest): Promise<string>;
}

/** A limiter in this process, with fresh counters. Without a configuration it has the default policy alone. */
export async function createLocalAsker(config: string | undefined): Promise<Asker> {
  const policies = config === undefined ? parsePolicies({ policies: [] }) : (await loadPolicies(config)).policySet;
  const limiter = createLimiter({ policies });
  return {
    check: async (request) => decisionBody(await limiter.check(request)),
    explain: async (request) => explanationBody(await limiter.explain(request)),
    explainInText: async (request) => renderExplanation(await limiter.explain(request)),
  };
}

const answerWithinMs = 10_000;

/** A server, by its URL. */
export function createRemoteAsker(server: string): Asker {
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
    if (isAnswer(response, accept)) return text;
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
function isAnswer({ status, headers }: Response, accept: string): boolean {
  const type = headers.get("content-type") ?? "";
  if (status === 200) return type.startsWith(accept);
  return type.startsWith("application/problem+json") && (status === 429 || status === 503);
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
