import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const example = fileURLToPath(new URL("../../../../config/policies.yaml", import.meta.url));

let daemon: Daemon;

beforeAll(async () => {
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", config: example });
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
});

afterAll(() => daemon.close());

async function remaining(scope: string, scope_value: string): Promise<unknown> {
  const response = await fetch(`${daemon.url}/shouldAllow`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ scope, scope_value, api: "/elsewhere" }),
  });
  return ((await response.json()) as Record<string, unknown>).remaining;
}

describe("the policies that come with Sluice", () => {
  it.each(["ip", "org", "api_key", "user"])("count every %s separately if no policy matches", async (scope) => {
    const [one, other] = scope === "ip" ? ["203.0.113.1", "203.0.113.2"] : ["one", "other"];
    expect(await remaining(scope, one!)).toBe(999);
    // A unit comes back every 100 ms, so two requests have to follow each other within that.
    await expect.poll(() => remaining(scope, one!), { timeout: 30_000, interval: 0 }).toBeLessThan(999);
    expect(await remaining(scope, other!)).toBe(999);
  });
});
