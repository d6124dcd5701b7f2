import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimitRequest, RateLimitServiceDefinition } from "@sluice/protocol/envoy";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Daemon, startDaemon } from "../../../boot/daemon.ts";
import { parseSettings } from "../../../settings/parse-settings.ts";
import { connectForTest, type GrpcTestClient } from "../../../testing/grpc-client.ts";
import { silentLog } from "../../../testing/test-service.ts";

let folder: string;
let daemon: Daemon;
let client: GrpcTestClient;

const envoy = (limit: number): string => `
domain: shop
descriptors:
  - { key: tenant, rate_limit: { unit: year, requests_per_unit: ${limit} } }
`;

async function save(name: string, text: string): Promise<void> {
  await writeFile(join(folder, ".next"), text);
  await rename(join(folder, ".next"), join(folder, name));
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-envoy-"));
  await save("shop.yaml", envoy(5));
  await save("own.yaml", "policies: [{ id: own, domain: own, limits: [{ windows: [3/h] }], on_failure: open }]");
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "0", config: folder });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  daemon = await startDaemon({ settings: reading.settings, log: silentLog, watch: { quietMs: 10, pollMs: 3_600_000 } });
  client = connectForTest(daemon.addresses.grpc[0]!.replace(/^\w+:\/\//, ""));
});

afterEach(async () => {
  client.close();
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

async function readRemaining(domain: string, key: string): Promise<number | undefined> {
  const request = RateLimitRequest.fromPartial({ domain, descriptors: [{ entries: [{ key, value: "acme" }] }] });
  const { statuses } = await client.call(RateLimitServiceDefinition, "shouldRateLimit", request);
  return statuses[0]?.currentLimit && statuses[0].limitRemaining;
}

describe("a daemon with files in Envoy's format", () => {
  it("applies them together with others, keeps counters through edits, and the last good ones if an edit is bad", async () => {
    expect(await readRemaining("shop", "tenant")).toBe(4);
    expect(await readRemaining("own", "tenant")).toBe(2);
    await save("shop.yaml", envoy(8));
    await daemon.reload();
    expect(await readRemaining("shop", "tenant")).toBe(6);
    await save("shop.yaml", envoy(9).replace("unit:", "units:"));
    await daemon.reload();
    expect(await readRemaining("shop", "tenant")).toBe(5);
    await save("more.yaml", envoy(1).replace("shop", "more"));
    await save("shop.yaml", envoy(8));
    await daemon.reload();
    expect(await readRemaining("more", "tenant")).toBe(0);
    expect(await readRemaining("shop", "tenant")).toBe(4);
  });

  it("lists them separately from policies that apply automatically", async () => {
    const body = (await (await fetch(`${daemon.url}/v1/policies`)).json()) as Record<string, unknown>;
    expect(body.policies).toMatchObject([{ id: "own" }]);
    expect(body.descriptors).toMatchObject([
      {
        domain: "shop",
        descriptors: [
          {
            key: "tenant",
            mode: "enforce",
            limits: [{ policy: "envoy:shop/tenant", algorithm: "fixed_window", windows: [{ limit: 5, per: "365d" }] }],
          },
        ],
      },
    ]);
  });

  it("answers to the health name that Envoy's users watch", async () => {
    const { HealthDefinition } = await import("@sluice/protocol/health");
    expect(await client.call(HealthDefinition, "check", { service: "ratelimit" })).toMatchObject({ status: 1 });
  });
});
