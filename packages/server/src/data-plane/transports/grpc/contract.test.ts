import type { ServiceError } from "@grpc/grpc-js";
import { CheckRequest, RateLimiterDefinition } from "@sluice/protocol";
import { describe, it } from "vitest";
import { connectForTest } from "../../../testing/grpc-client.ts";
import { listenForTest } from "../../../testing/test-service.ts";
import { type CheckAnswer, describeTransport, type TransportUnderTest } from "../../../testing/transport-contract.ts";
import { wholeGrpcServer } from "../../../testing/whole-servers.ts";
import type { Service } from "../../service/service.ts";

async function open(service: Service): Promise<TransportUnderTest> {
  const listening = await listenForTest("grpc", wholeGrpcServer(service));
  const client = connectForTest(listening.address);
  return {
    async check({ dimensions = {}, policies = [], ...asked }, token): Promise<CheckAnswer> {
      const request = CheckRequest.fromPartial({ ...asked, dimensions: { ...dimensions }, policies: [...policies] });
      try {
        return await client.call(RateLimiterDefinition, "check", request, { token });
      } catch (error) {
        return { error: readError(error as ServiceError) };
      }
    },
    async close(): Promise<void> {
      client.close();
      await listening.close();
    },
  };
}

function readError({ metadata, details }: ServiceError): CheckAnswer["error"] {
  return { code: String(metadata.get("sluice-code")[0]), message: details };
}

describeTransport("sluice.v1.RateLimiter/Check", open, { describe, it });

async function openBatches(service: Service): Promise<TransportUnderTest> {
  const listening = await listenForTest("grpc", wholeGrpcServer(service));
  const client = connectForTest(listening.address);
  return {
    async check({ dimensions = {}, policies = [], ...asked }, token): Promise<CheckAnswer> {
      const check = CheckRequest.fromPartial({ ...asked, dimensions: { ...dimensions }, policies: [...policies] });
      const stream = client.stream(RateLimiterDefinition, "checkStream", { token });
      return new Promise((resolve) => {
        stream.on("error", (error: ServiceError) => resolve({ error: readError(error) }));
        stream.on("data", ({ results: [result] }) => {
          resolve(result?.decision ?? { error: result?.error });
          stream.end();
        });
        stream.write({ sequence: 1, checks: [check], deadlineMs: 0 });
      });
    },
    async close(): Promise<void> {
      client.close();
      await listening.close();
    },
  };
}

describeTransport("sluice.v1.RateLimiter/CheckStream", openBatches, { describe, it });
