import { describe, expect, it } from "vitest";
import { createLimiter } from "../create-limiter.ts";
import type { Limiter } from "../limiter.ts";
import {
  onePolicy as one,
  openLimiter as open,
  limiterStartMs as start,
  byUser as user,
} from "../testing/open-limiter.ts";
import { MemorySubjectDirectory } from "./subject-directory.ts";

describe("matching", () => {
  const orders = (more: Record<string, unknown>): Record<string, unknown> => ({
    policies: [{ id: "orders", limits: [{ by: ["user"], windows: "1/h" }], ...more }],
    default: "none",
  });

  it.each([
    "/v1/orders/7",
    "/v1/orders",
    "/v1/orders/",
    "//v1///orders",
    "/v1/./orders",
    "/v1/x/../orders",
    "/v1/%6frders",
    "/V1/Orders",
    "/v1/orders?x=1",
    "/v1/orders%2f7",
    "/v1\\orders",
    "/v1;a=1/orders",
    "http://host/v1/orders",
  ])("cannot be dodged by writing the path as %s", (endpoint) => {
    const { limiter } = open(orders({ match: { endpoint: "/v1/orders/**" } }));
    expect(limiter.checkSync(user("u", { endpoint: "/v1/orders" })).allowed).toBe(true);
    expect(limiter.checkSync(user("u", { endpoint })).allowed).toBe(false);
  });

  it("does not let an ambiguous path reach an exemption that another reading of it does not have", () => {
    const { limiter } = open({
      policies: [
        { id: "api", match: { endpoint: "/v1/orders" }, limits: [{ by: "user", windows: "1/h" }] },
        { id: "health", match: { endpoint: "/health/**" }, unlimited: true, replaces: "api" },
      ],
    });
    expect(limiter.checkSync(user("u", { endpoint: "/v1/orders" })).allowed).toBe(true);
    expect(limiter.checkSync(user("u", { endpoint: "/health/x%2f..%2f..%2fv1%2forders" })).allowed).toBe(false);
    expect(limiter.checkSync(user("u", { endpoint: "/health/live" }))).toMatchObject({
      allowed: true,
      reason: "unlimited",
    });
  });

  it("lets an ambiguous path neither pass as allowed, nor escape the default, nor pay the lower cost", () => {
    const { limiter } = open({
      policies: [
        {
          id: "open",
          match: { endpoint: "/open/{x}" },
          allow: { user: "u" },
          limits: [{ by: "user", windows: "1/h" }],
        },
        {
          id: "rare",
          match: { endpoint: "/rare/**" },
          cost: { "/rare/a/b": 2, "/rare/{x}": 7 },
          limits: [{ by: "user", windows: "100/h" }],
        },
        {
          id: "dear",
          match: { endpoint: "/dear/**" },
          cost: { "/dear/a/b": 9, "/dear/{x}": 2 },
          limits: [{ by: "user", windows: "100/h" }],
        },
      ],
      default: { limits: [{ by: "user", windows: "2/h" }] },
    });
    expect(limiter.checkSync(user("u", { endpoint: "/open/a" })).reason).toBe("unlimited");
    const { limits } = limiter.checkSync({ ...user("u", { endpoint: "/open/a%2Fb" }), details: true });
    expect(limits?.map((limit) => limit.policy)).toEqual(["open", "default"]);
    expect(limiter.checkSync(user("u", { endpoint: "/dear/a%2Fb" }))).toMatchObject({ cost: 9 });
    expect(limiter.checkSync(user("u", { endpoint: "/rare/a%2Fb" }))).toMatchObject({ cost: 7 });
  });

  it("limits a name with an encoded slash by the pattern of a single segment", () => {
    const { limiter } = open(orders({ match: { endpoint: "/files/{name}" } }));
    limiter.checkSync(user("u", { endpoint: "/files/a" }));
    expect(limiter.checkSync(user("u", { endpoint: "/files/a%2Fb" })).allowed).toBe(false);
  });

  it("holds a path to the limit of every reading, and exempts it only if all agree", () => {
    const { limiter } = open({
      policies: [
        { id: "login", match: { endpoint: "/v1/login" }, limits: [{ windows: "1/h" }] },
        { id: "orders", match: { endpoint: "/v1/orders/**" }, limits: [{ windows: "1/h" }] },
        { id: "public", match: { endpoint: "/public/**" }, unlimited: true, replaces: ["login", "orders"] },
      ],
      default: "none",
    });
    for (const endpoint of ["/v1/login", "/v1/orders"])
      expect(limiter.checkSync({ dimensions: { endpoint } }).allowed).toBe(true);
    for (const endpoint of [
      "//public/v1/login",
      "/v1//../login",
      "/v1/orders/../../public/x",
      "/v1/orders/%2e%2e/%2e%2e/public/x",
    ])
      expect(limiter.checkSync({ dimensions: { endpoint } }), endpoint).toMatchObject({ allowed: false });
    for (const endpoint of ["/public/x", "/public//x", "/public/x/", "/public/a/../x", "/public/%C3%A9"])
      expect(limiter.checkSync({ dimensions: { endpoint } }), endpoint).toMatchObject({ reason: "unlimited" });
  });

  it("counts every reading of a path if a limit is by endpoint or by {param}: none is another counter to the app", () => {
    const { limiter } = open({
      policies: [
        { id: "each", limits: [{ by: "endpoint", windows: "2/h" }] },
        {
          id: "tenant",
          match: { endpoint: "/t/{tenant}/login/**" },
          limits: [{ by: ["tenant"], windows: "1/h" }],
        },
      ],
    });
    const allowed = (endpoint: string, policies?: string[]): boolean =>
      limiter.checkSync({ dimensions: { endpoint }, policies }).allowed;
    expect([allowed("//a/v1/login"), allowed("//b/v1/login"), allowed("//c/v1/login")]).toEqual([true, true, false]);
    expect([allowed("/v1/login"), allowed("/a/v1/login")]).toEqual([false, true]);
    expect(allowed("//d/v1/login", ["each"])).toBe(false);
    expect([allowed("/t/a/login/../../../t/b/login"), allowed("/t/a/login"), allowed("/t/b/login")]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("treats a trailing slash as an empty name only if no pattern does without it", () => {
    const { limiter } = open({
      policies: [
        { id: "list", match: { endpoint: "/files" }, limits: [{ windows: "1/h" }] },
        { id: "file", match: { endpoint: "/files/*" }, limits: [{ windows: "9/h" }] },
        { id: "item", match: { endpoint: "/items/{item}" }, limits: [{ windows: "1/h" }] },
      ],
      default: "none",
    });
    const check = (endpoint: string) => limiter.checkSync({ dimensions: { endpoint } });
    expect([check("/files/").policy, check("/files/").policy]).toEqual(["list", "list"]);
    expect(check("/files/x").remaining).toBe(8);
    expect([check("/items").reason, check("/items/").policy, check("/items/").allowed]).toEqual([
      "unlimited",
      "item",
      false,
    ]);
  });

  it("asks every policy that matches", () => {
    const { limiter } = open({
      policies: [
        { id: "all", limits: [{ by: "user", windows: "10/h" }] },
        { id: "v1", match: { endpoint: "/v1/**" }, limits: [{ by: "user", windows: "10/h" }] },
        { id: "one", match: { endpoint: "/v1/*/items" }, limits: [{ by: "user", windows: "10/h" }] },
        { id: "exact", match: { endpoint: "/v1/a/items" }, limits: [{ by: "user", windows: "10/h" }] },
        { id: "other", match: { endpoint: "/v1/a" }, limits: [{ by: "user", windows: "10/h" }] },
      ],
    });
    const { limits } = limiter.checkSync({ ...user("u", { endpoint: "/v1/a/items" }), details: true });
    expect(limits?.map((limit) => limit.policy).sort()).toEqual(["all", "exact", "one", "v1"]);
  });

  it("matches method and dimension values, and treats HEAD as GET", () => {
    const { limiter } = open(orders({ match: { method: "GET", tenant: ["acme", "zeta"], region: "*" } }));
    const reason = (dimensions: Record<string, string>): string =>
      limiter.checkSync({ dimensions: { user: Math.random().toString(), ...dimensions } }).reason;
    expect(reason({ method: "GET", tenant: "acme", region: "eu" })).toBe("within_limits");
    expect(reason({ method: "head", tenant: "zeta", region: "us" })).toBe("within_limits");
    expect(reason({ method: "POST", tenant: "acme", region: "eu" })).toBe("unlimited");
    expect(reason({ method: "GET", tenant: "other", region: "eu" })).toBe("unlimited");
    expect(reason({ method: "GET", tenant: "acme" })).toBe("unlimited");
  });

  it("checks anew for every request whether a required dimension is present", () => {
    const { limiter } = open(orders({ match: { endpoint: "/v1", region: "*" } }));
    const reason = (more: Record<string, string>): string =>
      limiter.checkSync(user("u", { endpoint: "/v1", ...more })).reason;
    expect([reason({}), reason({ region: "eu" }), reason({})]).toEqual(["unlimited", "within_limits", "unlimited"]);
  });

  it("matches addresses by range", () => {
    const { limiter } = open(orders({ match: { ip: ["10.0.0.0/8", "2001:db8::/32"] } }));
    const reason = (ip: string): string => limiter.checkSync(user(ip, { ip })).reason;
    expect(["10.1.2.3", "::ffff:10.9.9.9", "2001:db8::1", "11.0.0.1"].map(reason)).toEqual([
      "within_limits",
      "within_limits",
      "within_limits",
      "unlimited",
    ]);
  });

  it("keeps domains apart, and an absent domain is `default`", () => {
    const { limiter } = open({
      policies: [
        { id: "a", limits: [{ by: "user", windows: "1/h" }] },
        { id: "b", domain: "internal", limits: [{ by: "user", windows: "1/h" }] },
      ],
    });
    expect(limiter.checkSync(user("u")).policy).toBe("a");
    expect(limiter.checkSync({ ...user("u"), domain: "default" })).toMatchObject({ policy: "a", allowed: false });
    expect(limiter.checkSync({ ...user("u"), domain: "internal" })).toMatchObject({ policy: "b", allowed: true });
  });

  it("asks the default, 10/s burst 1000 by the request's subject, when nothing matches", () => {
    const { limiter } = open({ policies: [] });
    const ask = (dimensions: Record<string, string>): number | undefined =>
      limiter.checkSync({ dimensions, cost: 400 }).remaining;
    expect(limiter.checkSync(user("u"))).toMatchObject({ policy: "default", limit: 1000 });
    expect(ask({ user: "u", ip: "10.0.0.1", endpoint: "/a" })).toBe(599);
    expect(ask({ user: "u", ip: "10.0.0.2", endpoint: "/b" })).toBe(199);
    expect(ask({ ip: "10.0.0.1" })).toBe(600);
    expect(ask({ widget: "w" })).toBe(600);
    expect(ask({})).toBe(600);
  });

  it("may ask for policies by name, one or several, and names unknown ones", () => {
    const { limiter } = open({
      policies: [
        { id: "a", match: { endpoint: "/a" }, limits: [{ by: "user", windows: "9/h" }] },
        { id: "b", match: { endpoint: "/b" }, limits: [{ by: "user", windows: "9/h" }] },
      ],
    });
    const { limits } = limiter.checkSync({ ...user("u"), policies: ["a", "b", "a"], details: true });
    expect(limits?.map((limit) => limit.policy)).toEqual(["a", "b"]);
    expect(() => limiter.checkSync({ ...user("u"), policies: ["a", "c", "d"] })).toThrow(
      'no policy has the id "c"; no policy has the id "d"',
    );
    expect(() => limiter.checkSync({ ...user("u"), policies: [] })).toThrow(
      "policies must be a list of 1 to 32 policy ids",
    );
  });

  it("replaces policies that another one stands for, if that applies", () => {
    const { limiter } = open({
      policies: [
        { id: "standard", limits: [{ by: "user", windows: "1/h" }] },
        { id: "beta", match: { tenant: "acme" }, replaces: ["standard"], limits: [{ by: "user", windows: "5/h" }] },
      ],
    });
    expect(limiter.checkSync(user("u", { tenant: "acme" }))).toMatchObject({ policy: "beta", remaining: 4 });
    expect(limiter.checkSync(user("u", { tenant: "other" }))).toMatchObject({ policy: "standard", remaining: 0 });
  });

  it("lets only policies that stay replace others, and refuses rings", () => {
    const policy = (id: string, replaces: string[]): Record<string, unknown> => ({
      id,
      ...(replaces.length > 0 && { replaces }),
      limits: [{ by: "user", windows: "9/h" }],
    });
    const chain = open({ policies: [policy("a", ["b"]), policy("b", ["c"]), policy("c", [])] });
    const { limits } = chain.limiter.checkSync({ ...user("u"), details: true });
    expect(limits?.map((limit) => limit.policy)).toEqual(["a", "c"]);
    expect(() => open({ policies: [policy("a", ["b"]), policy("b", ["c"]), policy("c", ["a"])] })).toThrow(
      "closes a ring: a replaces b replaces c replaces a",
    );
  });

  it("gives a domain without policies the default in force, of this limiter and this generation", () => {
    const elsewhere = { ...user("u"), domain: "nowhere" };
    const { limiter } = open({ policies: [], default: { limits: [{ by: "user", windows: "5/h" }] } });
    expect(limiter.checkSync(elsewhere).limit).toBe(5);
    expect(open({ policies: [] }).limiter.checkSync(elsewhere).limit).toBe(1000);
    limiter.usePolicies({ policies: [], default: "none" });
    expect(limiter.checkSync(elsewhere).limit).toBeUndefined();
  });

  it("takes a {param} from the request if the policy was asked for by name", () => {
    const { limiter } = open(
      orders({ match: { endpoint: "/shops/{shop}/**" }, limits: [{ by: ["shop"], windows: "1/h" }] }),
    );
    const ask = (shop: string): boolean => limiter.checkSync({ policies: ["orders"], dimensions: { shop } }).allowed;
    expect([ask("a"), ask("b"), ask("a")]).toEqual([true, true, false]);
  });

  it("applies a policy from its date on", () => {
    const { limiter, clock } = open(orders({ valid_from: "2026-01-15T12:00:01Z" }));
    expect(limiter.checkSync(user("u")).reason).toBe("unlimited");
    clock.advance(1000);
    expect(limiter.checkSync(user("u")).reason).toBe("within_limits");
  });

  it("refuses a policy that is asked for by its id before its date, rather than let everything pass", () => {
    const { limiter, clock } = open(orders({ valid_from: "2026-01-15T12:00:01Z" }));
    const named = { ...user("u"), policies: ["orders"] };
    const message = 'policy "orders" is not in force until 2026-01-15T12:00:01.000Z, its valid_from';
    for (const ask of [named, { ...named, preview: true }]) {
      expect(() => limiter.checkSync(ask)).toThrow(
        expect.objectContaining({
          code: "policy_not_found",
          message,
          problems: [{ path: ["policies", 0], message }],
        }),
      );
    }
    clock.advance(1000);
    expect(limiter.checkSync(named).reason).toBe("within_limits");
  });

  it("rolls out to a stable share: a subject that is in at 10 % is in at 50 %", () => {
    const reached = (percent: number): Set<number> => {
      const { limiter } = open(orders({ rollout: { percent, by: "user" } }));
      return new Set(
        Array.from({ length: 2000 }, (_, i) => i).filter(
          (i) => limiter.checkSync(user(`u${i}`)).reason !== "unlimited",
        ),
      );
    };
    const [none, ten, fifty, everybody] = [reached(0), reached(10), reached(50), reached(100)];
    expect(none.size).toBe(0);
    expect(ten.size).toBeGreaterThan(140);
    expect(ten.size).toBeLessThan(260);
    expect([...ten].every((i) => fifty.has(i))).toBe(true);
    expect(everybody.size).toBe(2000);
  });

  it("rolls two policies out to different subjects", () => {
    const { limiter } = open({
      policies: ["a", "b"].map((id) => ({
        id,
        rollout: { percent: 50, by: "user" },
        limits: [{ by: "user", windows: "9/h" }],
      })),
      default: "none",
    });
    const counts = [0, 0, 0];
    for (let i = 0; i < 1000; i++) counts[limiter.checkSync({ ...user(`u${i}`), details: true }).limits!.length]! += 1;
    // Independent halves: a quarter in neither, a quarter in both.
    for (const [applied, share] of [
      [0, 250],
      [1, 500],
      [2, 250],
    ] as const)
      expect(Math.abs(counts[applied]! - share)).toBeLessThan(80);
  });

  it("takes {params} of the pattern as dimensions", () => {
    const { limiter } = open(
      orders({ match: { endpoint: "/shops/{shop}/**" }, limits: [{ by: ["shop"], windows: "1/h" }] }),
    );
    const ask = (endpoint: string): boolean => limiter.checkSync({ dimensions: { endpoint, shop: "spoofed" } }).allowed;
    expect([ask("/shops/a/x"), ask("/shops/a/y"), ask("/shops/b/x")]).toEqual([true, false, true]);
  });
});

describe("lists and missing dimensions", () => {
  const listed = {
    policies: [
      {
        id: "p",
        allow: { ip: ["10.0.0.0/8"], user: ["root"] },
        deny: { user: ["mallory"], ip: "10.6.6.6" },
        limits: [{ by: "user", windows: "1/h" }],
      },
    ],
  };

  it("denies by name without a retry-after, and lets those pass that are allowed; deny goes first", () => {
    const { limiter } = open(listed);
    expect(limiter.checkSync(user("mallory"))).toMatchObject({
      allowed: false,
      reason: "deny_list",
      policy: "p",
      retryAfterMs: undefined,
    });
    expect(limiter.checkSync(user("u", { ip: "10.6.6.6" }))).toMatchObject({ allowed: false, reason: "deny_list" });
    expect(limiter.checkSync(user("root"))).toMatchObject({ allowed: true, reason: "unlimited" });
    expect(limiter.checkSync(user("u", { ip: "::ffff:10.1.1.1" }))).toMatchObject({ reason: "unlimited" });
    expect(limiter.checkSync(user("u", { ip: "192.0.2.1" }))).toMatchObject({ reason: "within_limits" });
  });

  it("exempts an endpoint only if every reading of it is on the allow list, and denies it if any is on the deny list", () => {
    const { limiter } = open({
      policies: [
        {
          id: "p",
          allow: { endpoint: "/health" },
          deny: { endpoint: "/admin", method: "delete" },
          limits: [{ by: "user", windows: "100/h" }],
        },
      ],
    });
    const reason = (endpoint: string, method = "GET"): string =>
      limiter.checkSync(user("u", { endpoint, method })).reason;
    expect(reason("/health/")).toBe("unlimited");
    for (const trick of ["/v1/orders%2f..%2f..%2fhealth", "/v1/..;/health", "/v1\\..\\health"])
      expect(reason(trick)).toBe("within_limits");
    for (const trick of ["/ADMIN", "/x%2f..%2fadmin", "/x\\..\\admin"]) expect(reason(trick)).toBe("deny_list");
    expect(reason("/v1", "DELETE")).toBe("deny_list");
  });

  it("counts requests without the dimension together, unless the limit says otherwise", () => {
    const shared = open(one("1/h"));
    expect(shared.limiter.checkSync({ dimensions: {} }).allowed).toBe(true);
    expect(shared.limiter.checkSync({}).allowed).toBe(false);
    expect(shared.limiter.checkSync(user("")).allowed).toBe(false);
    const skipped = open(one("1/h", { missing: "skip" }));
    expect(skipped.limiter.checkSync({}).reason).toBe("unlimited");
    const denied = open(one("1/h", { missing: "deny" }));
    expect(denied.limiter.checkSync({})).toMatchObject({ allowed: false, reason: "missing_dimension", scope: "user" });
  });

  it("refuses values that are not text, and invalid addresses, naming the field", () => {
    const { limiter } = open({ policies: [{ id: "p", limits: [{ by: ["ip"], windows: "1/h" }] }] });
    expect(() => limiter.checkSync({ dimensions: { ip: "banana" } })).toThrow(
      'dimensions.ip is not an IP address: "banana"',
    );
    expect(() => limiter.checkSync({ dimensions: { ip: 7 as unknown as string } })).toThrow(
      "dimensions.ip must be a string, not number",
    );
    expect(() => limiter.checkSync({ dimensions: { ip: "1".repeat(5000) } })).toThrow("at most 4096 are allowed");
  });
});

describe("addresses as subjects", () => {
  it.each([
    ["2001:db8::1", "2001:db8::ffff:1", "rotating inside its /64"],
    ["::ffff:192.0.2.1", "192.0.2.1", "mapped into IPv6"],
    ["64:ff9b::192.0.2.1", "192.0.2.1", "behind NAT64"],
    ["fe80::1%eth0", "fe80::1%wlan0", "with a zone"],
  ])("counts %s and %s as one: %s", (first, second) => {
    const { limiter } = open({ policies: [{ id: "p", limits: [{ by: ["ip"], windows: "1/h" }] }] });
    expect(limiter.checkSync({ dimensions: { ip: first } }).allowed).toBe(true);
    expect(limiter.checkSync({ dimensions: { ip: second } }).allowed).toBe(false);
    expect(limiter.checkSync({ dimensions: { ip: "192.0.2.99" } }).allowed).toBe(true);
  });
});

describe("the size of an IPv6 network", () => {
  it("is one customer's /64 unless said otherwise, for subjects in the policies too", () => {
    const policies = {
      policies: [{ id: "p", limits: [{ by: ["ip"], windows: "1/h", tiers: { big: { windows: "9/h" } } }] }],
      subjects: [{ ip: "2001:db8:ff::1", tier: "big" }],
    };
    const { limiter } = open(policies, { ipv6PrefixBits: 48 });
    const ask = (ip: string): unknown => limiter.checkSync({ dimensions: { ip } });
    expect(ask("2001:db8:1:1::1")).toMatchObject({ allowed: true });
    expect(ask("2001:db8:1:2::1")).toMatchObject({ allowed: false });
    expect(ask("2001:db8:ff:ffff::1")).toMatchObject({ limit: 9 });
    for (const ipv6PrefixBits of [0, 129, 1.5])
      expect(() => open(policies, { ipv6PrefixBits })).toThrow("ipv6PrefixBits must be");
  });
});

describe("shadow mode", () => {
  it("decides and reports, denies nothing, replaces nothing and does not keep the default from applying", () => {
    const { limiter } = open({
      policies: [
        { id: "now", match: { endpoint: "/a" }, limits: [{ by: "user", windows: "3/h" }] },
        {
          id: "next",
          mode: "shadow",
          replaces: ["now"],
          deny: { user: "mallory" },
          limits: [{ by: "user", windows: "1/h" }],
        },
      ],
    });
    const ask = (name = "u"): unknown => limiter.checkSync(user(name, { endpoint: "/a" }));
    expect(ask()).toMatchObject({ allowed: true, policy: "now", shadow: [] });
    expect(ask()).toMatchObject({
      allowed: true,
      shadow: [{ policy: "next", scope: "user", reason: "over_limit", retryAfterMs: 3_600_000 }],
    });
    expect(ask("mallory")).toMatchObject({ allowed: true, shadow: [{ policy: "next", reason: "deny_list" }] });
    expect(limiter.checkSync(user("u", { endpoint: "/b" })).policy).toBe("default");
  });

  it("charges none of a policy's limits if one of them would refuse for a missing dimension", () => {
    const { limiter } = open({
      policies: [
        {
          id: "next",
          mode: "shadow",
          limits: [
            { by: "user", windows: "9/h" },
            { by: "tenant", windows: "9/h", missing: "deny" },
          ],
        },
      ],
    });
    expect(limiter.checkSync(user("u"))).toMatchObject({
      allowed: true,
      shadow: [{ policy: "next", scope: "tenant", reason: "missing_dimension" }],
    });
    const { limits } = limiter.checkSync({ ...user("u", { tenant: "t" }), preview: true, details: true });
    expect(limits?.filter((limit) => limit.shadow).map((limit) => limit.used)).toEqual([0, 0]);
  });

  it("begins its blocks, and only for what is allowed otherwise", () => {
    const { limiter } = open({
      policies: [
        { id: "now", limits: [{ by: "user", windows: "2/h" }] },
        { id: "next", mode: "shadow", limits: [{ by: "user", windows: "1/s", block_for: "10m" }] },
      ],
    });
    limiter.checkSync(user("u"));
    expect(limiter.checkSync(user("u")).shadow).toMatchObject([{ reason: "over_limit", retryAfterMs: 600_000 }]);
    expect(limiter.checkSync({ ...user("u"), preview: true }).shadow).toMatchObject([
      { reason: "blocked", retryAfterMs: 600_000 },
    ]);
  });
});

describe("tiers, custom limits and overrides", () => {
  const tiered = {
    policies: [
      {
        id: "p",
        limits: [
          { name: "per-user", by: ["tenant", "user"], windows: "10/h", tiers: { premium: { windows: "100/h" } } },
        ],
      },
    ],
    subjects: [
      { user: "rich", tier: "premium" },
      { tenant: "acme", tier: "premium" },
      { user: "odd", limits: [{ policy: "p", limit: "per-user", windows: "7/h" }] },
      { user: "soon", limits: [{ policy: "p", windows: "70/h", until: "2026-01-15T13:00:00Z" }] },
    ],
  };
  const findLimit = (limiter: Limiter, name: string, more: Record<string, string> = {}): number | undefined =>
    limiter.checkSync(user(name, more)).limit;

  it("finds the subject's tier or override, the most specific dimension first", () => {
    const { limiter, clock } = open(tiered);
    expect(findLimit(limiter, "poor")).toBe(10);
    expect(findLimit(limiter, "rich")).toBe(100);
    expect(findLimit(limiter, "poor", { tenant: "acme" })).toBe(100);
    expect(findLimit(limiter, "odd", { tenant: "acme" })).toBe(7);
    expect(findLimit(limiter, "poor", { tier: "premium" })).toBe(100);
    expect(findLimit(limiter, "soon")).toBe(70);
    clock.advance(3_600_000);
    expect(findLimit(limiter, "soon")).toBe(10);
  });

  it("knows subjects in every spelling of theirs, and by a {param} of the path", () => {
    const { limiter } = open({
      policies: [
        { id: "ip", limits: [{ by: "ip", windows: "10/h", tiers: { premium: { windows: "100/h" } } }] },
        {
          id: "shop",
          match: { endpoint: "/shops/{shop}" },
          replaces: "ip",
          limits: [{ by: "shop", windows: "10/h", tiers: { premium: { windows: "100/h" } } }],
        },
      ],
      subjects: [
        { ip: "::ffff:192.0.2.7", tier: "premium" },
        { ip: "2001:db8:0:1::5", tier: "premium" },
        { shop: "acme", tier: "premium" },
      ],
    });
    const limitOfIp = (ip: string): number | undefined => limiter.checkSync({ dimensions: { ip } }).limit;
    expect(["192.0.2.7", "64:ff9b::192.0.2.7", "2001:db8:0:1::99", "192.0.2.8"].map(limitOfIp)).toEqual([
      100, 100, 100, 10,
    ]);
    expect(limiter.checkSync({ dimensions: { endpoint: "/Shops/Acme", shop: "other" } }).limit).toBe(100);
    expect(limiter.checkSync({ dimensions: { endpoint: "/shops/other", shop: "acme" } }).limit).toBe(10);
  });

  it("keeps the counter when a subject changes its tier", () => {
    const subjects = new MemorySubjectDirectory();
    const { limiter } = open(tiered, { subjects });
    limiter.checkSync({ ...user("u"), cost: 5 });
    subjects.setTier("user", "u", "premium");
    expect(limiter.checkSync(user("u"))).toMatchObject({ limit: 100, remaining: 49 });
    subjects.setLimit("user", "u", {
      policy: "p",
      windows: [{ limit: 20, per: { kind: "ms", ms: 3_600_000 }, burst: 20 }],
      untilMs: start + 1,
    });
    expect(findLimit(limiter, "u")).toBe(20);
    subjects.delete("user", "u");
    expect(findLimit(limiter, "u")).toBe(10);
  });
});

describe("several limits", () => {
  it.each([
    ["100/m", "10/m"],
    ["10/m", "100/m"],
  ])("that share a counter, %s and %s, charge it once, at the stricter rate", (first, second) => {
    for (const algorithm of ["gcra", "fixed_window", "sliding_window", "sliding_log"]) {
      const limits = [first, second].map((windows) => ({ by: "user", windows, algorithm }));
      const { limiter } = open({ policies: [{ id: "p", limits }] });
      let allowed = 0;
      while (limiter.checkSync(user("u")).allowed) allowed += 1;
      expect(allowed).toBe(10);
    }
  });

  it.each(["gcra", "fixed_window", "sliding_window", "sliding_log"])(
    "that share a counter through tiers or overrides alone charge it once too: %s",
    (algorithm) => {
      const { limiter } = open({
        policies: [
          {
            id: "p",
            limits: [
              { by: "user", algorithm, windows: "100/h", tiers: { t: { windows: "10/m" } } },
              { by: "user", algorithm, windows: "10/d", tiers: { t: { windows: "100/m" } } },
            ],
          },
        ],
      });
      let allowed = 0;
      while (limiter.checkSync(user("u", { tier: "t" })).allowed) allowed += 1;
      expect(allowed).toBe(10);
    },
  );

  it("whose windows have one name but another kind or length do not share a counter", () => {
    const windows = [
      { limit: 10, per: "1s", name: "x" },
      { limit: 5, per: "never", name: "x" },
      { limit: 50, per: "1h", name: "x" },
    ];
    const { limiter, clock } = open({
      policies: [{ id: "p", limits: windows.map((window) => ({ by: "user", windows: window })) }],
    });
    let allowed = 0;
    for (let second = 0; second < 20; second++) {
      while (limiter.checkSync(user("u")).allowed) allowed += 1;
      clock.advance(1000);
    }
    expect(allowed).toBe(5);
  });

  it("do not count a subject that is spelt like another's counter in that counter", () => {
    const limits = [{ by: "user", windows: "1/h" }];
    const { limiter } = open({
      policies: ["p", "q"].map((id) => ({ id, match: { tenant: id }, limits })),
      default: "none",
    });
    const ask = (tenant: string, name: string): boolean => limiter.checkSync(user(name, { tenant })).allowed;
    expect(ask("p", "q|user:gcra|arrival:3600000")).toBe(true);
    expect(ask("q", "p|user:gcra|arrival:3600000")).toBe(true);
    expect(ask("p", "p|user:gcra|arrival:3600000")).toBe(true);
    expect(ask("q", "q|user:gcra|arrival:3600000")).toBe(true);
  });

  it("keep values apart that would look alike when joined", () => {
    const { limiter } = open({ policies: [{ id: "p", limits: [{ by: ["tenant", "user"], windows: "1/h" }] }] });
    const ask = (tenant: string, name: string): boolean => limiter.checkSync(user(name, { tenant })).allowed;
    expect([
      ask("a|b", "c"),
      ask("a", "b|c"),
      ask("a\\", "|c"),
      ask("a\\|", "c"),
      ask("", "a|c"),
      ask("a", "c"),
    ]).toEqual(Array(6).fill(true));
  });
});

describe("a limit for tiers alone", () => {
  const tiered = { by: ["user"], tiers: { premium: { windows: ["2/h"] } } };
  const decide = (policies: object) => {
    const limiter = createLimiter({ policies: policies as Readonly<Record<string, unknown>> });
    return (dimensions: Record<string, string>, more = {}) => limiter.checkSync({ dimensions, ...more });
  };

  it("limits subjects of its tiers, and leaves others to the default policy", () => {
    const check = decide({ policies: [{ id: "p", limits: [tiered] }], subjects: [{ user: "known", tier: "premium" }] });
    expect(check({ user: "u", tier: "premium" })).toMatchObject({ policy: "p", remaining: 1 });
    expect(check({ user: "known" })).toMatchObject({ policy: "p", remaining: 1 });
    expect(check({ user: "u" })).toMatchObject({ policy: "default", remaining: 999 });
    expect(check({ user: "u", tier: "gold" })).toMatchObject({ policy: "default", remaining: 998 });
  });

  it("leaves others to the policies that match them, and to none if there is no default", () => {
    const others = { id: "all", limits: [{ by: ["user"], windows: ["5/h"] }] };
    const check = decide({ policies: [{ id: "p", limits: [tiered] }, others] });
    expect(check({ user: "u" })).toMatchObject({ policy: "all", remaining: 4 });
    expect(check({ user: "u", tier: "premium" })).toMatchObject({ policy: "p", remaining: 1 });
    const alone = decide({ policies: [{ id: "p", limits: [tiered] }], default: "none" });
    expect(alone({ user: "u" })).toMatchObject({ allowed: true, reason: "unlimited" });
    expect(alone({ user: "u" }, { policies: ["p"] })).toMatchObject({ allowed: true, reason: "unlimited" });
  });

  it("leaves others to the default policy, including its lists and denials", () => {
    const perTenant = { by: ["tenant"], tiers: tiered.tiers };
    const byUser = { limits: [{ by: ["user"], windows: ["5/h"], missing: "deny" }], deny: { user: ["bad"] } };
    const check = decide({ policies: [{ id: "p", limits: [perTenant] }], default: byUser });
    const denied = { allowed: false, policy: "default" };
    expect(check({ tenant: "t" })).toMatchObject({ ...denied, reason: "missing_dimension" });
    expect(check({ tenant: "t", user: "bad" })).toMatchObject({ ...denied, reason: "deny_list" });
    expect(check({ tenant: "t", user: "u" })).toMatchObject({ policy: "default", remaining: 4 });
  });

  it.each([
    ["denies by name", { deny: { user: ["u"] } }],
    ["exempts", { allow: { user: ["u"] } }],
    ["lacks a dimension of", { limits: [{ by: ["org"], windows: ["1/h"], missing: "deny" }] }],
  ])("leaves others to the default policy even next to a policy in shadow mode that %s them", (_, more) => {
    const shadow = { id: "s", mode: "shadow", limits: [{ by: ["user"], windows: ["1/h"] }], ...more };
    const check = decide({ policies: [{ id: "p", limits: [tiered] }, shadow] });
    expect(check({ user: "u" })).toMatchObject({ allowed: true, policy: "default", remaining: 999 });
  });

  it("counts others once by a default policy in shadow mode", () => {
    const inShadow = { mode: "shadow", limits: [{ by: ["user"], windows: ["5/h"] }] };
    const check = decide({ policies: [{ id: "p", mode: "shadow", limits: [tiered] }], default: inShadow });
    expect(check({ user: "u" }, { details: true }).limits).toMatchObject([{ policy: "default", remaining: 4 }]);
  });

  it("needs windows in its tiers", () => {
    expect(() => decide({ policies: [{ id: "p", limits: [{ by: ["user"] }] }] })).toThrow(/limits\[0\]\.windows/);
    expect(() => decide({ policies: [{ id: "p", limits: [{ by: ["user"], tiers: {} }] }] })).toThrow(/windows/);
  });
});
