import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readExample, startSluice, type TestSluice } from "./gateway-under-test.ts";

const policies = fileURLToPath(new URL("policies.yaml", import.meta.url));
const example = await readExample("traefik.yaml");

interface ForwardAuth {
  readonly address: string;
  readonly trustForwardHeader: boolean;
  readonly authRequestHeaders: readonly string[];
  readonly authResponseHeaders: readonly string[];
}

interface Middleware {
  readonly headers?: { readonly customRequestHeaders: Readonly<Record<string, string>> };
  readonly forwardAuth?: ForwardAuth;
}

describe("the configuration for Traefik", () => {
  let sluice: TestSluice;
  let forwardAuth: ForwardAuth;
  /** Headers that are removed first, in lower case. */
  let removed: readonly string[];

  beforeAll(async () => {
    sluice = await startSluice(policies);
    const { http } = parse(example({ sluice: sluice.address, app: "127.0.0.1:1", gateway: "127.0.0.1:2" }));
    const chain: readonly Middleware[] = http.routers.app.middlewares.map((name: string) => http.middlewares[name]);
    expect(chain.map((one) => Object.keys(one)[0])).toEqual(["headers", "forwardAuth"]);
    forwardAuth = chain[1]!.forwardAuth!;
    removed = Object.entries(chain[0]!.headers!.customRequestHeaders).flatMap(([name, value]) =>
      value === "" ? [name.toLowerCase()] : [],
    );
  });

  afterAll(() => sluice.close());

  /**
   * A sub-request with the headers that Traefik documents for forwardAuth. Of a client's own, and of those that another middleware
   * wrote in between, only the headers it is configured to send.
   */
  async function forward(
    client: string,
    method: string,
    uri: string,
    own: Record<string, string>,
    written: Record<string, string> = {},
  ): Promise<Response> {
    const passed = forwardAuth.authRequestHeaders.map((name) => name.toLowerCase());
    const left = Object.entries(own).filter(([name]) => !removed.includes(name));
    const sent = [...left, ...Object.entries(written)].filter(([name]) => passed.includes(name));
    const headers = Object.fromEntries(sent);
    return fetch(forwardAuth.address, {
      headers: {
        ...headers,
        "x-forwarded-method": method,
        "x-forwarded-proto": "http",
        "x-forwarded-host": "shop.example",
        "x-forwarded-uri": uri,
        "x-forwarded-for": client,
      },
    });
  }

  it("uses a route that Sluice serves, and passes on headers that Sluice sends", async () => {
    const response = await forward("203.0.113.1", "POST", "/login?next=%2F", { "x-real-ip": "198.51.100.1" });
    expect(response.status).toBe(204);
    const counted = forwardAuth.authResponseHeaders.filter((name) => !name.startsWith("X-RateLimit-Degraded"));
    expect(counted).toHaveLength(5);
    for (const name of counted) expect(response.headers.get(name), name).not.toBeNull();
    expect((await forward("203.0.113.1", "POST", "/login", {})).status).toBe(204);
    const denied = await forward("203.0.113.1", "POST", "/login", { "x-original-uri": "/free" });
    expect(denied.status).toBe(429);
    expect(Number(denied.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await forward("203.0.113.2", "POST", "/login", {})).status).toBe(204);
  });

  it("distinguishes users by the header that it lets through, and trusts no client's", async () => {
    const asked = (user: string): Promise<Response> =>
      forward("203.0.113.3", "GET", "/v1/orders/7", { "x-user-id": "forged" }, { "x-user-id": user });
    for (let times = 0; times < 3; times++) expect((await asked("ada")).status).toBe(204);
    expect((await asked("ada")).status).toBe(429);
    expect((await asked("bob")).status).toBe(204);
    expect((await forward("203.0.113.3", "GET", "/account", { "x-user-id": "ada" })).status).toBe(429);
    expect(forwardAuth.trustForwardHeader).toBe(false);
  });
});
