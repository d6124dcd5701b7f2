import type { ServiceError } from "@grpc/grpc-js";
import { RateLimitRequest, type RateLimitResponse, RateLimitServiceDefinition } from "@sluice/protocol/envoy";
import { describe, it } from "vitest";
import { connectForTest } from "../../../testing/grpc-client.ts";
import { listenForTest } from "../../../testing/test-service.ts";
import {
  type AskedCheck,
  type CheckAnswer,
  describeTransport,
  type TransportUnderTest,
} from "../../../testing/transport-contract.ts";
import { wholeGrpcServer, wholeHttpServer } from "../../../testing/whole-servers.ts";
import type { Service } from "../../service/service.ts";
import { type RateLimitResponseJson, rateLimitResponseJson } from "./rate-limit-json.ts";

function createRequest({ domain = "default", dimensions = {}, preview }: AskedCheck): RateLimitRequest {
  const entries = Object.entries(dimensions).map(([key, value]) => ({ key, value }));
  return RateLimitRequest.fromPartial({
    domain,
    descriptors: [{ entries, ...(preview === true && { hitsAddend: 0 }) }],
  });
}

function readAnswer({ overallCode, statuses: [status] }: RateLimitResponseJson): CheckAnswer {
  const allowed = overallCode === "OK";
  const wait = status?.durationUntilReset;
  return {
    allowed,
    limit: status?.currentLimit?.requestsPerUnit,
    remaining: status?.currentLimit && status.limitRemaining,
    retryAfterMs: allowed || wait === undefined ? undefined : Number.parseFloat(wait) * 1_000,
  };
}

/**
 * In this protocol an outage under `on_failure: closed` is not an answer, but an error that Envoy has a setting for.
 */
function errorAnswer(code: string, message: string): CheckAnswer {
  return code === "store_unavailable" ? { allowed: false } : { error: { code, message } };
}

async function openGrpc(service: Service): Promise<TransportUnderTest> {
  const listening = await listenForTest("grpc", wholeGrpcServer(service));
  const client = connectForTest(listening.address);
  return {
    async check(asked, token): Promise<CheckAnswer> {
      try {
        const options = { token };
        const response: RateLimitResponse = await client.call(
          RateLimitServiceDefinition,
          "shouldRateLimit",
          createRequest(asked),
          options,
        );
        return readAnswer(rateLimitResponseJson(response));
      } catch (error) {
        const { metadata, details } = error as ServiceError;
        return errorAnswer(String(metadata.get("sluice-code")[0]), details);
      }
    },
    async close(): Promise<void> {
      client.close();
      await listening.close();
    },
  };
}

async function openHttp(service: Service): Promise<TransportUnderTest> {
  const context = { ...service, idempotencyHeader: false, random: undefined };
  const listening = await listenForTest("http", await wholeHttpServer(context));
  return {
    async check(asked, token): Promise<CheckAnswer> {
      const response = await fetch(`http://${listening.address}/json`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(createRequest(asked)),
      });
      const body = (await response.json()) as RateLimitResponseJson & { code: string; detail: string };
      return body.overallCode === undefined ? errorAnswer(body.code, body.detail) : readAnswer(body);
    },
    close: () => listening.close(),
  };
}

// No value is refused, because Envoy lets a request pass then.
const lacks = ["cost", "id", "policies", "strict values"] as const;
describeTransport("Envoy's ShouldRateLimit", openGrpc, { describe, it }, { lacks });
describeTransport("Envoy's POST /json", openHttp, { describe, it }, { lacks });
