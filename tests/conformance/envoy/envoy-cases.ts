import assert from "node:assert/strict";
import { eventually } from "../../clients/contract/contract-case.ts";
import { newName } from "../../clients/contract/contract-world.ts";
import type { RunningEnvoy } from "./start-envoy.ts";

/** An Envoy with two servers of Sluice, in front of an app that counts its requests. */
export interface EnvoyScene {
  readonly envoy: RunningEnvoy;
  /** Requests that the app has seen with this `x-tenant`. */
  seen(tenant: string): number;
  /** Stops one of the servers, as after SIGTERM. */
  drain(index: number): Promise<void>;
}

export interface EnvoyCase {
  /** A sentence about Envoy. */
  readonly name: string;
  /** How many servers of Sluice it needs. Their counters are separate. */
  readonly servers: 1 | 2;
  /** How long a server that stops goes on, so that Envoy's health checks notice. Absent: not at all. */
  readonly drain?: string;
  run(scene: EnvoyScene): Promise<void>;
}

export const envoyCases: readonly EnvoyCase[] = [
  {
    name: "passes what Sluice allows, with rate limit headers, and answers 429 to what it denies",
    servers: 1,
    async run({ envoy, seen }) {
      const tenant = newName();
      for (const remaining of ["1", "0"]) {
        const { status, headers } = await request(envoy.lenient, { "x-tenant": tenant });
        assert.equal(status, 200);
        assert.equal(headers.get("x-ratelimit-remaining"), remaining);
      }
      const { status, headers } = await request(envoy.lenient, { "x-tenant": tenant });
      assert.deepEqual([status, headers.get("x-envoy-ratelimited")], [429, "true"]);
      assert.equal(seen(tenant), 2);
    },
  },
  {
    name: "limits each value of a descriptor separately",
    servers: 1,
    async run({ envoy }) {
      const [one, other] = [newName(), newName()];
      for (const status of [200, 200, 429])
        assert.equal((await request(envoy.lenient, { "x-tenant": one })).status, status);
      assert.equal((await request(envoy.lenient, { "x-tenant": other })).status, 200);
    },
  },
  {
    name: "limits by several entries of a descriptor, and denies if one of several descriptors is over its limit",
    servers: 1,
    async run({ envoy }) {
      const tenant = newName();
      assert.equal((await request(envoy.lenient, { "x-tenant": tenant }, "/downloads")).status, 200);
      assert.equal((await request(envoy.lenient, { "x-tenant": tenant }, "/downloads")).status, 429);
      // The denial charged nothing of the tenant's limit of 2.
      assert.equal((await request(envoy.lenient, { "x-tenant": tenant }, "/elsewhere")).status, 200);
      assert.equal((await request(envoy.lenient, { "x-tenant": tenant }, "/elsewhere")).status, 429);
    },
  },
  {
    name: "admits exactly the limit of many requests at once",
    servers: 1,
    async run({ envoy }) {
      const crowd = newName();
      const statuses = await Promise.all(
        Array.from({ length: 300 }, async () => (await request(envoy.strict, { "x-crowd": crowd })).status),
      );
      assert.equal(statuses.filter((status) => status === 200).length, 100);
      assert.equal(statuses.filter((status) => status === 429).length, 200);
    },
  },
  {
    name: "asks the other server while one stops, without a failed request",
    servers: 2,
    drain: "5s",
    async run({ envoy, drain }) {
      let [answered, stopped] = [0, false];
      const callers = Array.from({ length: 8 }, async () => {
        while (!stopped) {
          // Each has its own name, so that none is over its limit; a failed call would be 503.
          const { status } = await request(envoy.strict, { "x-tenant": newName() });
          assert.equal(status, 200);
          answered += 1;
        }
      });
      const failed = Promise.all(callers);
      const goOn = (requests: number): Promise<unknown> => {
        const aim = answered + requests;
        return Promise.race([failed, eventually("requests go on", () => answered >= aim)]);
      };
      await goOn(100);
      await Promise.all([drain(0), goOn(100)]);
      await goOn(100);
      stopped = true;
      await failed;
      await eventually("Envoy finds one server healthy", async () => (await envoy.healthy()) === 1);
    },
  },
  {
    name: "passes requests, or answers 503, as its failure mode says while no server answers",
    servers: 1,
    async run({ envoy, drain, seen }) {
      const tenant = newName();
      assert.equal((await request(envoy.strict, { "x-tenant": tenant })).status, 200);
      await drain(0);
      assert.equal((await request(envoy.strict, { "x-tenant": tenant })).status, 503);
      assert.equal((await request(envoy.lenient, { "x-tenant": tenant })).status, 200);
      assert.equal(seen(tenant), 2);
    },
  },
];

async function request(url: string, headers: Record<string, string>, path = "/"): Promise<Response> {
  const response = await fetch(`${url}${path}`, { headers });
  await response.arrayBuffer();
  return response;
}
