import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createLimiter, ManualClock, MemoryCounters } from "sluice";
import { parseYamlDocument } from "sluice/policy-text";
import { afterAll, describe, expect, it } from "vitest";
import { accessWithRole } from "../../testing/test-service.ts";
import { leaseShape } from "./http/handlers/lease.ts";
import { schemas } from "./http/schemas.ts";
import { type StartedHttp, startHttp } from "./http/testing/start-http.ts";

const page = await readFile(fileURLToPath(new URL("../../../../../docs/lease-protocol.md", import.meta.url)), "utf8");
let server: StartedHttp | undefined;
afterAll(() => server?.close());

describe("docs/lease-protocol.md", () => {
  it("names every field of a request and of an answer", () => {
    const fields = [leaseShape.schema, schemas.GivenLease].flatMap(({ properties }) =>
      Object.keys(properties as object),
    );
    expect(fields.length).toBeGreaterThanOrEqual(11);
    for (const field of fields) expect(page, field).toContain(`| \`${field}\` |`);
  });

  it("shows an exchange as it really goes", async () => {
    const clock = new ManualClock(Date.UTC(2025, 0, 1));
    const [, written = ""] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    const policies = parseYamlDocument(written, undefined).contents as Readonly<Record<string, unknown>>;
    const limiter = createLimiter({ policies, clock, counters: new MemoryCounters({ clock }) });
    server = await startHttp(limiter, {
      access: accessWithRole("check"),
      leaseTimes: { leaseMs: 10_000, staleMs: 60_000 },
    });
    const exchange = [...page.matchAll(/```json\n([\s\S]*?)```\n```json\n([\s\S]*?)```/g)];
    expect(exchange).toHaveLength(3);
    const moments = [0, 300, 10_300];
    for (const [i, [, body = "", answer = ""]] of exchange.entries()) {
      clock.advance(moments[i]! - clock.nowMs());
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${server.url}/v1/lease`, { method: "POST", headers, body });
      expect(await response.json(), body).toEqual(JSON.parse(answer));
    }
  });
});
