import { type CheckRequest, createLimiter } from "sluice";
import { expect, it, vi } from "vitest";
import { renderUsageEvents, type UsageEvent } from "./usage-event.ts";
import { UsageEvents } from "./usage-events.ts";

vi.mock("./public-subject.ts", () => ({
  publicSubject: (dimension: string, value: string) => `${dimension}:${value.length}`,
}));

const secrets = {
  ...{ tenant: "private-tenant", user: "private-user", api_key: "private-key", region: "private-region" },
  ip: "192.0.2.77",
};

const policies = {
  policies: [
    { id: "one", match: { endpoint: "/one" }, limits: [{ by: ["tenant", "user"], windows: ["1/h"] }] },
    { id: "address", match: { endpoint: "/address" }, limits: [{ by: ["ip"], windows: ["1/h"] }] },
    { id: "billed", match: { endpoint: "/billed" }, limits: [{ by: ["api_key"], windows: ["1/h"] }], events: "each" },
    { id: "free", match: { endpoint: "/free" }, unlimited: true },
    { id: "blocked", match: { endpoint: "/blocked" }, deny: { region: [secrets.region] } },
  ],
};

it("has every value of a dimension that is in an event, whatever decided and whichever kind it is", async () => {
  const limiter = createLimiter({ policies });
  const published: UsageEvent[] = [];
  const events = new UsageEvents({
    ...{ limiter, ipv6PrefixBits: 64, node: "n", boot: "b", source: "/sluice", subjectDimension: "tenant" },
    publish: (event) => published.push(event),
  });
  events.active = true;
  const window = { limit: 1, per: { kind: "ms", ms: 60_000 }, burst: 1 } as const;
  const { tenant: _tenant, ...withoutTenant } = secrets;
  const requests: readonly CheckRequest[] = [
    ...["/one", "/address", "/billed", "/free", "/blocked", "/none"].flatMap((endpoint) => [
      { dimensions: { ...secrets, endpoint } },
      { dimensions: { ...withoutTenant, endpoint } },
    ]),
    { dimensions: secrets, limits: [{ name: "brought", by: ["user", "ip"], window }] },
  ];
  for (let twice = 0; twice < 2; twice++)
    for (const request of requests) events.count(request, limiter.checkSync(request));
  await events.flush();
  expect(new Set(published.map(({ data }) => data.kind))).toEqual(new Set(["each", "summary"]));
  expect(new Set(published.map(({ data }) => data.allowed))).toEqual(new Set([true, false]));
  const text = renderUsageEvents(published);
  expect(text).toContain('"subject":"tenant:14"');
  expect(text).toContain('"key":"user:12|ip:10"');
  expect(text).toContain('"region":"region:14"');
  for (const value of Object.values(secrets)) expect(text).not.toContain(value);
});
