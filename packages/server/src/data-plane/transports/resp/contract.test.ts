import { createClient } from "@redis/client";
import { describe, it } from "vitest";
import { listenForTest } from "../../../testing/test-service.ts";
import {
  type AskedCheck,
  type CheckAnswer,
  describeTransport,
  type TransportUnderTest,
} from "../../../testing/transport-contract.ts";
import type { Service } from "../../service/service.ts";
import { prefixByCode } from "./errors.ts";
import { createRespServer } from "./server.ts";

const codeByPrefix = new Map([
  ...Object.entries(prefixByCode).map(([code, prefix]) => [prefix, code] as const),
  // Many codes are sent as these.
  ["ERR", "invalid_request"] as const,
  ["WRONGPASS", "unauthenticated"] as const,
]);

function listWords({ dimensions = {}, policies = [], cost, id, domain, preview }: AskedCheck): string[] {
  return [
    "SLUICE.CHECK",
    ...policies,
    ...Object.entries(dimensions).map(([name, value]) => `${name}=${value}`),
    ...(cost === undefined ? [] : ["COST", String(cost)]),
    ...(id === undefined ? [] : ["ID", id]),
    ...(domain === undefined ? [] : ["DOMAIN", domain]),
    ...(preview === true ? ["PREVIEW"] : []),
  ];
}

function readAnswer(reply: unknown): CheckAnswer {
  if (Array.isArray(reply)) {
    const [allowed, limit, remaining, retryAfterMs] = (reply as number[]).map((one) => (one === -1 ? undefined : one));
    return { allowed: allowed === 1, limit, remaining, retryAfterMs };
  }
  const { allowed, limit, remaining, retry_after_ms } = reply as Record<string, number | boolean | null>;
  const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
  return {
    allowed: allowed === true,
    limit: number(limit),
    remaining: number(remaining),
    retryAfterMs: number(retry_after_ms),
  };
}

function readError(error: unknown): CheckAnswer {
  const { message } = error as Error;
  return { error: { code: codeByPrefix.get(message.split(" ", 1)[0]!) ?? message, message } };
}

/** A server, and node-redis in one version of the protocol. */
async function open(service: Service, version: 2 | 3): Promise<TransportUnderTest> {
  const listening = await listenForTest("resp", createRespServer(service));
  const client = createClient({ socket: { host: "127.0.0.1", port: listening.port }, RESP: version });
  client.on("error", () => {});
  await client.connect();
  return {
    async check(request, token): Promise<CheckAnswer> {
      try {
        if (token !== undefined) await client.sendCommand(["AUTH", token]);
        return readAnswer(await client.sendCommand(listWords(request)));
      } catch (error) {
        return readError(error);
      }
    },
    async close(): Promise<void> {
      client.destroy();
      await listening.close();
    },
  };
}

describeTransport("SLUICE.CHECK over RESP2", (service) => open(service, 2), { describe, it });
// In RESP3 no client connects without a token if tokens are required: HELLO comes first.
describeTransport("SLUICE.CHECK over RESP3", (service) => open(service, 3), { describe, it }, { lacks: ["tokens"] });
