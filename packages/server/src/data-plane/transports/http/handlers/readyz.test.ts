import { createLimiter, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import type { Access, Caller } from "../../../access/access.ts";
import { rolePermissions } from "../../../access/roles.ts";
import { startHttp } from "../testing/start-http.ts";

const access: Access = {
  identify(token): Caller {
    if (token === "looks") return { name: "v", may: new Set(rolePermissions.viewer) };
    if (token === "asks") return { name: "c", may: new Set(rolePermissions.check) };
    throw new SluiceError("unauthenticated", "no");
  },
};

describe("GET /readyz of a server with tokens", () => {
  it("tells every client whether it is ready, and only those that may read what is wrong, and where", async () => {
    const place = { file: "/etc/hidden/p.yaml", line: 3, column: 5 };
    const away = [{ shard: "10.0.0.7:6379", cell: undefined, why: "is not connected" }];
    const server = await startHttp(createLimiter(), {
      access,
      policyStatus: () => ({ state: "stale", problems: [{ path: ["policies"], message: "is missing", place }] }),
      countersStatus: () => ({ ready: false, shards: 1, away, slow: [] }),
    });
    const ask = async (token?: string, query = ""): Promise<string> => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch(`${server.url}/readyz${query}`, { headers });
      expect(response.status).toBe(query === "" ? 200 : 503);
      return response.text();
    };
    try {
      const common = { config: "stale", problem_count: 1, counters: { shards: 1 }, degraded: ["counters_unavailable"] };
      for (const token of [undefined, "asks", "unknown"]) {
        for (const query of ["", "?strict"]) {
          const text = await ask(token, query);
          expect(text, token).not.toMatch(/hidden|10\.0\.0\.7|is missing/);
          expect(JSON.parse(text), token).toMatchObject(common);
        }
        expect(JSON.parse(await ask(token))).toMatchObject({ status: "degraded" });
        expect(JSON.parse(await ask(token))).not.toHaveProperty("code");
        expect(JSON.parse(await ask(token, "?strict=true"))).toMatchObject({ status: "unready", code: "not_ready" });
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

describe("GET /readyz while something is degraded", () => {
  const slow = [{ shard: "10.0.0.7:6379", cell: undefined, why: "the last exchange took 3000 ms" }];

  it("is ready with ?strict as long as the counters can be reached, however slowly", async () => {
    const server = await startHttp(createLimiter(), {
      countersStatus: () => ({ ready: true, shards: 1, away: [], slow }),
    });
    try {
      for (const query of ["", "?strict", "?strict=false", "?probe=1"]) {
        const response = await fetch(`${server.url}/readyz${query}`);
        expect(response.status, query).toBe(200);
        expect(await response.json(), query).toMatchObject({ status: "degraded", degraded: ["counters_slow"] });
      }
    } finally {
      await server.close();
    }
  });

  it("is not ready while it stops, whatever else is degraded", async () => {
    const server = await startHttp(createLimiter(), {
      accepting: () => false,
      countersStatus: () => ({ ready: false, shards: 1, away: [], slow: [] }),
    });
    try {
      for (const query of ["", "?strict"]) {
        const response = await fetch(`${server.url}/readyz${query}`);
        expect(response.status, query).toBe(503);
        expect(await response.json(), query).toMatchObject({ status: "stopping", code: "not_ready" });
      }
    } finally {
      await server.close();
    }
  });
});
