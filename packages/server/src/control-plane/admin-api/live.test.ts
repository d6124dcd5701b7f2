import { get, type IncomingMessage } from "node:http";
import { SluiceError } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Access } from "../../data-plane/access/access.ts";
import { type Role, rolePermissions } from "../../data-plane/access/roles.ts";
import { linkWorkers } from "../../testing/link-workers.ts";
import { limitPolicy } from "./testing/route-examples.ts";
import { applyStored, createRoleActor, type StartedAdmin, startAdmin, team } from "./testing/start-admin.ts";

interface Received {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server sends.
  readonly data: any;
}

/** A client that reads events, like `EventSource`. */
interface Watching {
  readonly response: IncomingMessage;
  readonly received: Received[];
  readonly text: () => string;
  readonly isOver: () => boolean;
}

let admin: StartedAdmin;
let open: IncomingMessage[];
const revoked = new Set<string>();

/** Tokens are roles; a role may be revoked. */
const access: Access = {
  identify(token) {
    const role = token as Role;
    if (revoked.has(role) || !(role in rolePermissions))
      throw new SluiceError("unauthenticated", "this token is not known here");
    return { name: role, role, may: new Set(rolePermissions[role]), tokenId: role, ...(role === "editor" && { team }) };
  },
};

beforeEach(async () => {
  revoked.clear();
  open = [];
  admin = await startAdmin({ access, live: { maxOfToken: 3, maxStreams: 5 } });
  const actor = createRoleActor("admin");
  await admin.control.policies.put(actor, "orders", limitPolicy("orders", 2));
  const match = { endpoint: "/login" };
  const limits = [{ by: ["api_key"], windows: ["1000000/m"] }];
  await admin.control.policies.put(actor, "login", { id: "login", owner: "identity", match, limits });
  await applyStored(admin);
});

afterEach(async () => {
  for (const response of open) response.destroy();
  await admin.close();
});

function watch(
  path: string,
  headers: Readonly<Record<string, string>> = { authorization: "Bearer viewer" },
  { url } = admin,
): Promise<Watching> {
  return new Promise((resolve, reject) => {
    const asked = get(`${url}/api/v1/live/${path}`, { headers }, (response) => {
      open.push(response);
      let text = "";
      let over = false;
      const received: Received[] = [];
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        const whole = [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)];
        received.push(
          ...whole.slice(received.length).map(([, event = "", data = ""]) => ({ event, data: JSON.parse(data) })),
        );
      });
      response.on("close", () => {
        over = true;
      });
      response.on("error", () => {});
      resolve({ response, received, text: () => text, isOver: () => over });
    });
    asked.on("error", reject);
  });
}

function check(endpoint: string, dimensions: Readonly<Record<string, string>>): void {
  void admin.service.decide.one({ dimensions: { endpoint, ...dimensions } });
}

const receivedData = ({ received }: Watching, event: string) =>
  received.filter((one) => one.event === event).map(({ data }) => data);

describe("live overview", () => {
  it("shows rates, reasons and latency of this node", async () => {
    const watching = await watch("overview");
    expect(watching.response.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
    await expect.poll(() => receivedData(watching, "overview").length).toBeGreaterThan(0);
    const before = receivedData(watching, "overview").length;
    for (let i = 0; i < 10; i++) check("/orders", { user: "acme" });
    await expect.poll(() => receivedData(watching, "overview").some((one) => one.per_second.decided > 0)).toBe(true);
    const all = receivedData(watching, "overview").slice(before);
    const sum = (read: (one: never) => number | undefined): number =>
      Math.round(all.reduce((total, one) => total + (read(one as never) ?? 0) * one.seconds, 0));
    expect(sum(({ per_second }: { per_second: { allowed: number } }) => per_second.allowed)).toBe(2);
    expect(sum(({ denied_by }: { denied_by: { over_limit?: number } }) => denied_by.over_limit)).toBe(8);
    expect(all.find((one) => one.per_second.decided > 0)).toMatchObject({
      node: { id: "node-1", name: "node" },
      workers: { heard: 1, silent: 0 },
      latency_ms: { p50: expect.any(Number), p99: expect.any(Number) },
      status: "ready",
    });
  });
});

describe("live decisions", () => {
  it("are shown as they are made, filtered, and with what they stand for", async () => {
    const watching = await watch("decisions?policy=orders&dimension=user&subject=acme&allowed=false");
    await expect.poll(() => admin.live.size).toBe(1);
    for (let i = 0; i < 5; i++) check("/orders", { user: "acme" });
    for (let i = 0; i < 5; i++) check("/orders", { user: "other" });
    check("/login", { api_key: "k" });
    await expect.poll(() => receivedData(watching, "decisions").reduce((sum, { matched }) => sum + matched, 0)).toBe(3);
    const items = receivedData(watching, "decisions").flatMap((one) => one.items);
    expect(items.reduce((sum, one) => sum + one.stands_for, 0)).toBe(3);
    expect(items[0]).toMatchObject({
      policy: "orders",
      allowed: false,
      reason: "over_limit",
      by: ["user"],
      dimensions: { user: "acme", endpoint: "/orders" },
      window: "2/m",
      cost: 1,
      node: "node",
    });
  });

  it("show no secret", async () => {
    const watching = await watch("decisions?dimension=api_key&subject=very-secret");
    await expect.poll(() => admin.live.size).toBe(1);
    check("/login", { api_key: "very-secret" });
    check("/login", { api_key: "another" });
    await expect.poll(() => receivedData(watching, "decisions").length).toBe(1);
    expect(receivedData(watching, "decisions")[0]).toMatchObject({
      matched: 1,
      items: [{ dimensions: { api_key: /^sha256:/ } }],
    });
    expect(watching.text()).not.toContain("secret");
  });

  it("are to an editor those of its team's policies", async () => {
    const watching = await watch("decisions", { authorization: "Bearer editor" });
    await expect.poll(() => admin.live.size).toBe(1);
    check("/login", { api_key: "k" });
    check("/orders", { user: "acme" });
    await expect.poll(() => receivedData(watching, "decisions").length).toBe(1);
    expect(receivedData(watching, "decisions")[0]).toMatchObject({ matched: 1, items: [{ policy: "orders" }] });
  });

  it("cost nothing once no one watches", async () => {
    const watching = await watch("decisions");
    await expect.poll(() => admin.live.size).toBe(1);
    watching.response.destroy();
    await expect.poll(() => admin.live.size).toBe(0);
  });
});

describe("live changes", () => {
  it("come at once, and say later what was changed by whom; another topic comes by the same connection", async () => {
    const watching = await watch("changes?with=overview");
    await expect.poll(() => receivedData(watching, "changes").length).toBe(1);
    expect(receivedData(watching, "changes")[0]).toMatchObject({ changes: [], more: false });
    await admin.control.policies.put(createRoleActor("admin"), "fresh", limitPolicy("fresh", 9));
    await expect.poll(() => receivedData(watching, "changes").length).toBe(2);
    expect(receivedData(watching, "changes")[1].changes).toMatchObject([
      { action: "policy.put", target: "fresh", actor: "admin" },
    ]);
    await expect.poll(() => receivedData(watching, "overview").length).toBeGreaterThan(0);
    // One that begins later sees the state, and not what others were shown.
    const later = await watch("changes");
    await expect.poll(() => receivedData(later, "changes").length).toBe(1);
    expect(receivedData(later, "changes")[0].changes).toEqual([]);
  });
});

describe("live streams", () => {
  it("are bounded, for a token and for all", async () => {
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await watch("changes")).response.statusCode);
    expect(statuses).toEqual([200, 200, 200, 503]);
    for (const role of ["admin", "editor", "operator"])
      statuses.push((await watch("changes", { authorization: `Bearer ${role}` })).response.statusCode);
    expect(statuses.slice(4)).toEqual([200, 200, 503]);
    open[0]!.destroy();
    await expect.poll(() => admin.live.size).toBe(4);
    expect((await watch("changes")).response.statusCode).toBe(200);
  });

  it("end when the token is revoked, or the session is over", async () => {
    const watching = await watch("changes");
    const origin = admin.url;
    const cookie = "sluice-session=admin";
    const withCookie = await watch("changes", { cookie });
    const bearer = await watch("changes", { authorization: "Bearer admin" });
    await expect.poll(() => admin.live.size).toBe(3);
    revoked.add("viewer");
    await expect.poll(() => watching.isOver()).toBe(true);
    expect(watching.received.at(-1)).toEqual({ event: "end", data: { reason: "session_ended" } });
    const headers = { cookie, origin, "x-sluice-console": "1" };
    expect((await fetch(`${admin.url}/api/v1/session`, { method: "DELETE", headers })).status).toBe(204);
    await expect.poll(() => withCookie.isOver()).toBe(true);
    expect(bearer.isOver()).toBe(false);
  });

  it("end at every worker when the session is over", async () => {
    const link = linkWorkers();
    const [first, second] = await Promise.all(
      [1, 2].map((number) => startAdmin({ access, live: { worker: link(number) } })),
    );
    try {
      const cookie = "sluice-session=admin";
      const ended = await watch("changes", { cookie }, second);
      const other = await watch("changes", { cookie: "sluice-session=viewer" }, second);
      await expect.poll(() => second!.live.size).toBe(2);
      const headers = { cookie, origin: first!.url, "x-sluice-console": "1" };
      expect((await fetch(`${first!.url}/api/v1/session`, { method: "DELETE", headers })).status).toBe(204);
      await expect.poll(() => ended.isOver()).toBe(true);
      expect(ended.received.at(-1)).toEqual({ event: "end", data: { reason: "session_ended" } });
      expect(other.isOver()).toBe(false);
    } finally {
      await Promise.all([first!.close(), second!.close()]);
    }
  });

  it("end when the server stops, which does not wait for them", async () => {
    const watching = await watch("decisions?with=changes,overview");
    expect(await admin.close()).toBe(0);
    await expect.poll(() => watching.isOver()).toBe(true);
    expect(watching.received.at(-1)).toEqual({ event: "end", data: { reason: "server_stopping" } });
    admin = await startAdmin();
  });

  it("refuse what they do not know", async () => {
    for (const query of ["with=everything", "allowed=perhaps", "tenant=acme"])
      expect((await watch(`decisions?${query}`)).response.statusCode, query).toBe(400);
    const head = await fetch(`${admin.url}/api/v1/live/changes`, {
      method: "HEAD",
      headers: { authorization: "Bearer viewer" },
    });
    expect([head.status, admin.live.size]).toEqual([200, 0]);
  });
});
