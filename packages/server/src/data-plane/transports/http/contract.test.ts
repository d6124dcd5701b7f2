import { describe, it } from "vitest";
import { listenForTest } from "../../../testing/test-service.ts";
import {
  type AskedCheck,
  type CheckAnswer,
  describeTransport,
  type TransportUnderTest,
} from "../../../testing/transport-contract.ts";
import { wholeHttpServer } from "../../../testing/whole-servers.ts";
import type { Service } from "../../service/service.ts";

type Ask = (url: string, request: AskedCheck, token: Readonly<Record<string, string>>) => Promise<CheckAnswer>;

const openFor =
  (ask: Ask) =>
  async (service: Service): Promise<TransportUnderTest> => {
    const authorizeDimensions = { user: "x-user", tenant: "x-tenant" };
    const context = { ...service, idempotencyHeader: false, random: undefined, authorizeDimensions };
    const server = await listenForTest("http", await wholeHttpServer(context));
    return {
      check: (request, token): Promise<CheckAnswer> =>
        ask(`http://${server.address}`, request, token === undefined ? {} : { authorization: `Bearer ${token}` }),
      close: () => server.close(),
    };
  };

/** A decision, or a problem with a code, as a body. */
interface Body {
  readonly allowed?: boolean;
  readonly limit?: number;
  readonly remaining?: number;
  readonly retry_after_ms?: number;
  readonly code?: string;
  readonly detail?: string;
}

function readAnswer({ code, detail = "", allowed, limit, remaining, retry_after_ms: retryAfterMs }: Body): CheckAnswer {
  return code === undefined ? { allowed, limit, remaining, retryAfterMs } : { error: { code, message: detail } };
}

async function post(url: string, body: unknown, token: Readonly<Record<string, string>>): Promise<unknown> {
  const response = await fetch(`${url}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json", ...token },
    body: JSON.stringify(body),
  });
  return response.json();
}

describeTransport(
  "POST /v1/check",
  openFor(async (url, request, token) => readAnswer((await post(url, request, token)) as Body)),
  { describe, it },
);

describeTransport(
  "POST /v1/check with a batch",
  openFor(async (url, request, token) => {
    const body = (await post(url, { checks: [request] }, token)) as Body & {
      readonly answers?: readonly { readonly decision?: Body; readonly error?: Body }[];
    };
    const [answer] = body.answers ?? [];
    return readAnswer(answer?.decision ?? answer?.error ?? body);
  }),
  { describe, it },
);

describeTransport(
  "GET /v1/authorize",
  openFor(async (url, { dimensions = {}, cost, policies = [], domain }, token) => {
    const query = new URLSearchParams(policies.map((policy): [string, string] => ["policy", policy]));
    if (cost !== undefined) query.set("cost", String(cost));
    if (domain !== undefined) query.set("domain", domain);
    const headers = Object.entries(dimensions).map(([name, value]) => [
      name === "ip" ? "x-real-ip" : `x-${name}`,
      value,
    ]);
    const response = await fetch(`${url}/v1/authorize?${query}`, {
      headers: { ...Object.fromEntries(headers), ...token },
    });
    const text = await response.text();
    if (text !== "") return readAnswer(JSON.parse(text) as Body);
    const number = (name: string): number | undefined => {
      const told = response.headers.get(name);
      return told === null ? undefined : Number(told);
    };
    return {
      allowed: response.status === 204,
      limit: number("x-ratelimit-limit"),
      remaining: number("x-ratelimit-remaining"),
    };
  }),
  { describe, it },
  { lacks: ["id", "preview"] },
);
