import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { startCaddy, startNginx } from "@sluice/test-servers";
import { createLimiter } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everyEnvoy, forwardByEnvoy } from "./envoy-paths.ts";
import { readExample, startSluice } from "./gateway-under-test.ts";
import { byPath, type PathReader, sendTarget, startReaders } from "./path-readers.ts";
import { type LimitedRoute, limitedRoutes, listSpellings } from "./path-spellings.ts";

const policies = fileURLToPath(new URL("path-policies.yaml", import.meta.url));
const spellings = listSpellings();
const recorded = JSON.parse(
  readFileSync(new URL("go-paths/generated/readings.json", import.meta.url), "utf8"),
) as RecordedReadings;
const limiter = createLimiter({ policies: parsePolicyText(readFileSync(policies, "utf8")).policySet });

/** What go-paths/main.go writes: by target the route that a ServeMux runs and the path that a handler sees. */
interface RecordedReadings {
  readonly regenerate: string;
  readonly readings: Readonly<Record<string, readonly [route: string, path: string] | null>>;
}

/** Which limits Sluice holds a request to that names this target. */
async function limitsOn(target: string): Promise<readonly string[]> {
  const { policies: found } = await limiter.explain({ dimensions: { endpoint: target } });
  return found.filter(({ applies }) => applies).map(({ policy }) => policy);
}

type FindRoute = (target: string) => Promise<LimitedRoute | undefined>;

/** Spellings that reach a limited route past its limit. */
async function findEvasions(targets: Iterable<string>, findRoute: FindRoute) {
  const evasions: string[] = [];
  let reached = 0;
  await forEach(targets, async (target) => {
    const route = await findRoute(target);
    if (route === undefined) return;
    reached += 1;
    if (!(await limitsOn(target)).includes(route)) evasions.push(`${JSON.stringify(target)} runs ${route}`);
  });
  return { evasions, reached };
}

/** Eight at a time: each may be a connection. */
async function forEach(targets: Iterable<string>, go: (target: string) => Promise<void>): Promise<void> {
  const waiting = [...targets];
  const work = async (): Promise<void> => {
    for (let target = waiting.pop(); target !== undefined; target = waiting.pop()) await go(target);
  };
  await Promise.all(Array.from({ length: 8 }, work));
}

describe("the readings of a path", () => {
  let readers: readonly PathReader[];

  beforeAll(async () => {
    readers = await startReaders();
  });

  afterAll(() => Promise.all(readers.map((reader) => reader.close())));

  it("include where real servers and routers take the same request line", async () => {
    expect(spellings.length).toBeGreaterThan(500);
    for (const { name, findRoute } of readers) {
      const { evasions, reached } = await findEvasions(spellings, findRoute);
      expect(evasions, name).toEqual([]);
      // A reader that finds nothing proves nothing.
      expect(reached, name).toBeGreaterThan(20);
    }
  }, 60_000);

  it("include where Go's net/http takes it, as recorded", async () => {
    const { readings, regenerate } = recorded;
    expect(Object.keys(readings), regenerate).toEqual(spellings);
    const byMux = await findEvasions(spellings, async (target) => (readings[target]?.[0] || undefined) as LimitedRoute);
    const byText = await findEvasions(spellings, async (target) => byPath(readings[target]?.[1] ?? ""));
    expect([byMux.evasions, byText.evasions]).toEqual([[], []]);
    expect(Math.min(byMux.reached, byText.reached)).toBeGreaterThan(20);
  });

  it("include the route that a model of Envoy finds, and those that servers behind it find", async () => {
    const behind = readers.filter(({ name }) => /new URL|Express, newest|Fastify/.test(name));
    expect(behind).toHaveLength(3);
    const forwarded = new Set<string>();
    for (const settings of everyEnvoy) {
      for (const target of spellings) {
        const path = forwardByEnvoy(target, settings);
        if (path !== undefined) forwarded.add(path);
      }
    }
    for (const findRoute of [async (path: string) => byPath(path), ...behind.map((reader) => reader.findRoute)]) {
      const { evasions, reached } = await findEvasions(forwarded, findRoute);
      expect(evasions).toEqual([]);
      expect(reached).toBeGreaterThan(20);
    }
  }, 60_000);

  it.each([
    ["nginx", "nginx.conf", (configFor: (port: number) => string) => startNginx({ httpFor: configFor })],
    ["Caddy", "Caddyfile", (configFor: (port: number) => string) => startCaddy({ sitesFor: configFor })],
  ] as const)(
    "leave no way past a limit through %s as it is shipped",
    async (_name, file, start) => {
      const app = await startRawApp();
      const sluice = await startSluice(policies);
      const example = await readExample(file);
      const gateway = await start((port) =>
        example({ sluice: sluice.address, app: `127.0.0.1:${app.port}`, gateway: `127.0.0.1:${port}` }).replace(
          // Caddy serves only configured hosts, and requests here name this one.
          /^http:\/\/127\.0\.0\.1:(\d+) \{/m,
          "http://127.0.0.1:$1, http://h:$1 {",
        ),
      );
      try {
        for (const route of Object.values(limitedRoutes)) {
          const path = encodeURI(route.replace(/\{\w+\}|\*\*/, "7"));
          expect(await sendTarget(gateway.port, path)).toMatch(/^HTTP\/1\.1 200 /);
          expect(await sendTarget(gateway.port, path)).toMatch(/^HTTP\/1\.1 429 /);
        }
        app.targets.clear();
        await forEach(spellings, async (target) => void (await sendTarget(gateway.port, target)));
        // The limits are used up, so a request that reached the app must be on no limited route, for every reader.
        expect(app.targets.size).toBeGreaterThan(20);
        for (const { name, findRoute } of readers) {
          await forEach(app.targets, async (target) => {
            expect(await findRoute(target), `${name} reads ${JSON.stringify(target)}`).toBeUndefined();
          });
        }
      } finally {
        await gateway.close();
        await sluice.close();
        await app.close();
      }
    },
    60_000,
  );
});

/** An app that accepts any bytes as a request, and records them. */
async function startRawApp() {
  const targets = new Set<string>();
  const server = createServer((socket) => {
    socket.setEncoding("latin1").on("error", () => {});
    socket.on("data", (text: string) => {
      targets.add(/^\S+ (.*) HTTP\/1\.[01]\r\n/.exec(text)?.[1] ?? "");
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async (): Promise<void> => {
    server.close();
    await once(server, "close");
  };
  return { port: (server.address() as AddressInfo).port, targets, close };
}
