import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createAdminClient } from "@sluice/client/admin";
import { startPrometheus, startServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { repositoryRoot } from "../repository/source-tree.ts";
import { type Sluice, startSluice } from "../restart/start-sluice.ts";

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly type: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
  }[];
}

const folder = path.join(repositoryRoot, "deploy/grafana/dashboards");
const dashboards = readdirSync(folder).map((name) => {
  return JSON.parse(readFileSync(path.join(folder, name), "utf8")) as Dashboard;
});

describe("the model of each dashboard", () => {
  it.each(dashboards)("can be drawn: $title", ({ panels, templating, uid }) => {
    const variables = new Set([...templating.list.map(({ name }) => name), "__rate_interval"]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(uid).toMatch(/^[a-z-]{1,40}$/);
    for (const [index, { gridPos, targets, title }] of panels.entries()) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (const { gridPos: other } of panels.slice(0, index))
        expect(
          gridPos.x >= other.x + other.w ||
            other.x >= gridPos.x + gridPos.w ||
            gridPos.y >= other.y + other.h ||
            other.y >= gridPos.y + gridPos.h,
          `${title} covers another panel`,
        ).toBe(true);
      for (const { expr } of targets)
        for (const [, name] of expr.matchAll(/\$(\w+)/g)) expect(variables, expr).toContain(name);
    }
  });

  it("has a unique name, and every query chooses servers by the job", () => {
    expect(new Set(dashboards.map(({ uid }) => uid)).size).toBe(6);
    for (const { panels } of dashboards)
      for (const { targets } of panels)
        for (const { expr } of targets)
          for (const [series] of expr.matchAll(/\b(sluice|process|nodejs)_\w+(\{[^}]*\})?/g))
            expect(series).toContain('job=~"$job"');
  });
});

describe("every query finds something on a fleet under traffic", () => {
  let closing: (() => Promise<unknown>)[];
  let sluice: Sluice;
  let query: (expression: string) => Promise<ReadonlyMap<string, number>>;
  let traffic: NodeJS.Timeout;

  beforeAll(async () => {
    const scratch = await mkdtemp(path.join(tmpdir(), "sluice-dashboards-"));
    closing = [() => rm(scratch, { recursive: true, force: true })];
    const redis = await startServer({ flavor: "valkey" });
    closing.push(() => redis.close());
    const token = "a-first-admin-token-for-dashboards-0123";
    await writeFile(path.join(scratch, "token"), token);
    const policy = {
      ...{ id: "login", owner: "identity", match: { endpoint: "/login" }, events: "each" },
      limits: [{ by: ["user"], windows: ["1000/s", "50/m"] }],
    };
    await writeFile(path.join(scratch, "seed.yaml"), JSON.stringify({ policies: [policy] }));
    sluice = await startSluice(
      { SLUICE_REDIS_URL: redis.url, SLUICE_STORE_URL: `sqlite:${path.join(scratch, "store.db")}` },
      ...["--seed", path.join(scratch, "seed.yaml"), "--admin-token-from", path.join(scratch, "token")],
      ...["--usage-events", `file:${path.join(scratch, "usage.jsonl")}`, "--hot-key-metrics", "10"],
    );
    closing.push(() => sluice.kill());
    const prometheus = await startPrometheus({ targets: { sluice: sluice.http.replace("http://", "") } });
    closing.push(() => prometheus.close());
    query = prometheus.query;
    const headers = { "content-type": "application/json" };
    let sent = 0;
    const send = async (): Promise<void> => {
      const checks = Array.from({ length: 20 }, () => ({
        dimensions: { user: `u${sent++ % 3}`, endpoint: sent % 2 === 0 ? "/login" : "/else" },
      }));
      const body = JSON.stringify({ checks });
      await fetch(`${sluice.http}/v1/check`, { method: "POST", headers, body }).then((answer) => answer.text());
    };
    traffic = setInterval(() => void send().catch(() => undefined), 50);
    // A change while Prometheus looks on.
    const isScraped = async (): Promise<void> => expect((await query("sluice_store_generation_in_force")).size).toBe(1);
    await vi.waitFor(isScraped, { timeout: 30_000, interval: 200 });
    const admin = createAdminClient({ server: sluice.admin, token });
    const changed = { ...policy, limits: [{ by: ["user"], windows: ["1000/s", "60/m"] }] };
    await admin.policies.put("login", changed, { expected: 1 });
  }, 120_000);

  afterAll(async () => {
    clearInterval(traffic);
    for (const close of closing.reverse()) await close();
  });

  it.each(dashboards)(
    "$title",
    async ({ panels }) => {
      const empty = async (): Promise<readonly string[]> => {
        const asked = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })));
        const found = await Promise.all(
          asked.map(async ({ title, expr }) => {
            const concrete = expr.replaceAll("$__rate_interval", "30s").replaceAll(/\$(job|policy)/g, ".+");
            const values = [...(await query(concrete)).values()];
            return values.some((value) => Number.isFinite(value)) ? [] : [`${title}: ${concrete}`];
          }),
        );
        return found.flat();
      };
      await expect.poll(empty, { timeout: 60_000, interval: 500 }).toEqual([]);
    },
    90_000,
  );
});
