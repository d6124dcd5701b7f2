import { createLimiter, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import type { Access, Caller } from "../../../access/access.ts";
import { permissionsOf } from "../../../access/roles.ts";
import { startHttp } from "../testing/start-http.ts";

const access: Access = {
  identify(token): Caller {
    if (token === "looks") return { name: "v", may: new Set(permissionsOf.viewer) };
    if (token === "asks") return { name: "c", may: new Set(permissionsOf.check) };
    throw new SluiceError("unauthenticated", "no");
  },
};

describe("GET /readyz of a server with tokens", () => {
  it("tells everybody whether it is ready, and only who may look what is wrong, and where", async () => {
    const place = { file: "/etc/hidden/p.yaml", line: 3, column: 5 };
    const away = [{ shard: "10.0.0.7:6379", cell: undefined, why: "is not connected" }];
    const server = await startHttp(createLimiter(), {
      access,
      policyStatus: () => ({ state: "stale", problems: [{ path: ["policies"], message: "is missing", place }] }),
      countersStatus: () => ({ ready: false, shards: 1, away, slow: [] }),
    });
    const ask = async (token?: string): Promise<string> => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch(`${server.url}/readyz`, { headers });
      expect(response.status).toBe(503);
      return response.text();
    };
    try {
      for (const token of [undefined, "asks", "unknown"]) {
        const text = await ask(token);
        expect(text, token).not.toMatch(/hidden|10\.0\.0\.7|is missing/);
        expect(JSON.parse(text), token).toMatchObject({
          ...{ status: "unready", code: "not_ready", config: "stale", problem_count: 1, counters: { shards: 1 } },
        });
      }
      expect(JSON.parse(await ask("looks"))).toMatchObject({
        detail: expect.stringContaining("10.0.0.7:6379"),
        problems: [expect.stringContaining("/etc/hidden/p.yaml")],
        counters: { shards: 1, away: [{ shard: "10.0.0.7:6379" }] },
      });
    } finally {
      await server.close();
    }
  });
});
