import assert from "node:assert/strict";
import { CheckBatchRequest, CheckBatchResponse } from "@sluice/protocol";
import { RateLimitResponse_Code as EnvoyCode, RateLimitRequest, RateLimitResponse } from "@sluice/protocol/envoy";
import {
  HealthCheckResponse_ServingStatus as Health,
  HealthCheckRequest,
  HealthCheckResponse,
} from "@sluice/protocol/health";
import { ServerReflectionRequest, ServerReflectionResponse } from "@sluice/protocol/reflection";
import { assertCode, type ContractCase, checkCall, code, decisionFrom, eventually } from "./contract-case.ts";
import type { Call } from "./contract-client.ts";
import { newName } from "./contract-world.ts";

/** Streams, and the services beside Sluice's own. */
export const streamCases: readonly ContractCase[] = [
  {
    name: "answers every batch of a stream, and charges each check once",
    needs: ["bidirectional streams"],
    async run(client, { open }) {
      const user = newName();
      const outcome = await client.call(open.target, streamCall(user, 500, 20));
      assertCode(outcome, code.ok);
      assert.deepEqual(
        sequencesFrom(outcome.responses).toSorted((one, other) => one - other),
        Array.from({ length: 500 }, (_, index) => index + 1),
      );
      assert.equal(await open.charged(user), 10_000);
    },
  },
  {
    name: "ends a stream at a batch that is none, after the answers before it",
    needs: ["bidirectional streams"],
    async run(client, { open }) {
      const { requests, ...call } = streamCall(newName(), 2, 1);
      const empty = CheckBatchRequest.encode({ sequence: 3, checks: [], deadlineMs: 0 }).finish();
      const outcome = await client.call(open.target, { ...call, requests: [...requests, empty] });
      assertCode(outcome, code.invalidArgument);
      assert.deepEqual(sequencesFrom(outcome.responses), [1, 2]);
    },
  },
  {
    name: "notices a cancelled call, and serves the connection's other calls",
    needs: ["server streams", "cancellation"],
    async run(client, { start }) {
      const server = await start();
      // A call that the server never ends. Some clients end their side of a stream before they cancel it, and it may end with OK then.
      const watch = { method: "/grpc.health.v1.Health/Watch", kind: "server stream" as const, cancelAfter: 1 };
      assertCode(await client.call(server.target, { ...watch, requests: [new Uint8Array()] }), code.cancelled);
      const ended = (name: string): Promise<number> =>
        server.metric(`sluice_grpc_calls_total{method="grpc.health.v1.Health/Watch",code="${name}"}`);
      await eventually("the server has ended the call", async () => (await ended("CANCELLED")) === 1);
      assert.equal(await ended("OK"), 0);
      const next = checkCall({ dimensions: { user: newName() } });
      assert.equal(decisionFrom(await client.call(server.target, next)).allowed, true);
      assert.equal(await server.metric('sluice_connections{protocol="grpc"}'), 1);
    },
  },
  {
    name: "answers many calls at once over one connection, and charges each once",
    needs: ["one connection"],
    async run(client, { start }) {
      const server = await start();
      const user = newName();
      const call = checkCall({ domain: "bulk", dimensions: { user } });
      const outcomes = await client.callTogether(server.target, call, 300);
      assert.equal(outcomes.length, 300);
      const left = outcomes.map((outcome) => decisionFrom(outcome).remaining!);
      assert.equal(new Set(left).size, 300);
      assert.equal(await server.charged(user), 300);
    },
  },
  {
    name: "reports its health, for each service by name",
    needs: [],
    async run(client, { open }) {
      const ask = (service: string): Call => ({
        method: "/grpc.health.v1.Health/Check",
        requests: [HealthCheckRequest.encode({ service }).finish()],
      });
      for (const service of ["", "ratelimit", "sluice.v1.RateLimiter"]) {
        const outcome = await client.call(open.target, ask(service));
        assertCode(outcome, code.ok);
        assert.equal(HealthCheckResponse.decode(outcome.responses[0]!).status, Health.SERVING);
      }
      assertCode(await client.call(open.target, ask("unheard.of")), code.notFound);
    },
  },
  {
    name: "notifies health watchers that it stops, and ends their calls with OK",
    needs: ["server streams", "answers past GOAWAY"],
    async run(client, { start }) {
      const server = await start();
      const watch = { method: "/grpc.health.v1.Health/Watch", kind: "server stream" as const };
      const watching = client.call(server.target, { ...watch, requests: [new Uint8Array()] });
      await eventually(
        "the call has arrived",
        async () => (await server.metric('sluice_connections{protocol="grpc"}')) === 1,
      );
      // Once another call over a second connection is answered, the first has been read for sure.
      await client.call(server.target, checkCall({ dimensions: { user: newName() } }));
      await server.drain();
      const outcome = await watching;
      assertCode(outcome, code.ok);
      const seen = outcome.responses.map((response) => HealthCheckResponse.decode(response).status);
      assert.deepEqual(seen, [Health.SERVING, Health.NOT_SERVING]);
    },
  },
  {
    name: "lists its services by reflection",
    needs: ["bidirectional streams"],
    async run(client, { open }) {
      for (const version of ["v1", "v1alpha"]) {
        const request = ServerReflectionRequest.encode(
          ServerReflectionRequest.fromPartial({ listServices: "*" }),
        ).finish();
        const outcome = await client.call(open.target, {
          method: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
          kind: "bidirectional",
          requests: [request],
        });
        assertCode(outcome, code.ok);
        const { listServicesResponse } = ServerReflectionResponse.decode(outcome.responses[0]!);
        const names = listServicesResponse?.service.map(({ name }) => name) ?? [];
        assert.ok(names.includes("sluice.v1.RateLimiter") && names.includes("grpc.health.v1.Health"), names.join());
      }
    },
  },
  {
    name: "answers Envoy, for all descriptors together",
    needs: [],
    async run(client, { open }) {
      const tenant = newName();
      const ask = async (...entries: [string, string][]): Promise<RateLimitResponse> => {
        const descriptors = entries.map(([key, value]) => ({ entries: [{ key, value }] }));
        const request = RateLimitRequest.encode(RateLimitRequest.fromPartial({ domain: "shop", descriptors })).finish();
        const method = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
        const outcome = await client.call(open.target, { method, requests: [request] });
        assertCode(outcome, code.ok);
        return RateLimitResponse.decode(outcome.responses[0]!);
      };
      for (const remaining of [1, 0]) {
        const { overallCode, statuses } = await ask(["tenant", tenant], ["unlimited", "x"]);
        assert.equal(overallCode, EnvoyCode.OK);
        assert.deepEqual(
          statuses.map(({ limitRemaining }) => limitRemaining),
          [remaining, 0],
        );
      }
      const { overallCode, statuses } = await ask(["tenant", tenant], ["unlimited", "x"]);
      assert.equal(overallCode, EnvoyCode.OVER_LIMIT);
      assert.deepEqual(
        statuses.map((status) => status.code),
        [EnvoyCode.OVER_LIMIT, EnvoyCode.OK],
      );
    },
  },
];

/** A bidirectional call with batches numbered from 1. */
export function streamCall(user: string, batches: number, checksEach: number): Call {
  const checks = Array.from({ length: checksEach }, () => ({ domain: "bulk", dimensions: { user } }));
  const requests = Array.from({ length: batches }, (_, index) =>
    CheckBatchRequest.encode(CheckBatchRequest.fromPartial({ sequence: index + 1, checks })).finish(),
  );
  return { method: "/sluice.v1.RateLimiter/CheckStream", kind: "bidirectional", requests };
}

export function sequencesFrom(responses: readonly Uint8Array[]): readonly number[] {
  return responses.map((response) => CheckBatchResponse.decode(response).sequence);
}
