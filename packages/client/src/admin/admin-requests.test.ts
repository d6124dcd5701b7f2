import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { AdminError, AdminUnavailable, createAdminClient } from "./index.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function listen(listener: RequestListener): Promise<string> {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function refuse(status: number, code: string, headers: Readonly<Record<string, string>> = {}): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { "content-type": "application/problem+json", ...headers });
    const problems = [{ field: "limits[0]", message: "is wrong" }];
    response.end(JSON.stringify({ type: "about:blank", title: "", status, code, detail: "that is so", problems }));
  };
}

/** Answers with these bodies, one after the other, and remembers the requests. */
function answer(...bodies: readonly unknown[]): {
  readonly asked: IncomingMessage[];
  readonly listener: RequestListener;
} {
  const asked: IncomingMessage[] = [];
  return {
    asked,
    listener(request, response) {
      asked.push(request);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(bodies[asked.length - 1] ?? {}));
    },
  };
}

describe("a request to the control plane", () => {
  it("sends token, version and query, and says by If-None-Match that there should be nothing", async () => {
    const { asked, listener } = answer();
    const admin = createAdminClient({ server: await listen(listener), token: "sluice_x\n" });
    await admin.policies.put("a/b", { unlimited: true }, { dryRun: true, expected: 3 });
    await admin.policies.put("a", { unlimited: true }, { expected: 0 });
    await admin.configuration.import("policies: []", { expected: "any" });
    expect(asked[0]).toMatchObject({
      method: "PUT",
      url: "/api/v1/policies/a%2Fb?dry_run=true",
      headers: { authorization: "Bearer sluice_x", "if-match": '"3"', "content-type": "application/json" },
    });
    expect(asked[1]?.headers).toMatchObject({ "if-none-match": "*" });
    expect(asked[1]?.headers["if-match"]).toBeUndefined();
    expect(asked[2]?.headers).toMatchObject({ "if-match": "*", "content-type": "application/yaml" });
  });

  it("may be for a control plane below a path", async () => {
    const { asked, listener } = answer();
    await createAdminClient({ server: `${await listen(listener)}/sluice` }).nodes.list();
    expect(asked[0]?.url).toBe("/sluice/api/v1/nodes");
  });

  it("fails with the problem that the control plane reports", async () => {
    const admin = createAdminClient({ server: await listen(refuse(409, "version_conflict")) });
    const error = await admin.policies.delete("p").catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(AdminError);
    expect(error).toMatchObject({
      message: "that is so",
      status: 409,
      code: "version_conflict",
      problem: { problems: [{ field: "limits[0]", message: "is wrong" }] },
    });
  });

  it("fails without a code where the answer is another server's, or a redirect", async () => {
    const html: RequestListener = (_request, response) => response.setHeader("content-type", "text/html").end("<p>hi");
    const error = await createAdminClient({ server: await listen(html) })
      .nodes.list()
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: undefined, problem: undefined, message: expect.stringContaining("<p>hi") });
    server?.close();
    const elsewhere: RequestListener = (_request, response) => response.writeHead(302, { location: "/" }).end();
    await expect(createAdminClient({ server: await listen(elsewhere) }).nodes.list()).rejects.toThrow(AdminUnavailable);
  });

  it("is sent again only after 429, as often as it may, and not after hours", async () => {
    let asked = 0;
    const waits: number[] = [];
    const options = { retries: 2, onWait: (waitMs: number) => waits.push(waitMs) };
    const busy = (seconds: string): RequestListener => {
      return (request, response) => {
        asked += 1;
        refuse(429, "rate_limited", { "retry-after": seconds })(request, response);
      };
    };
    const soon = createAdminClient({ server: await listen(busy("0")), ...options });
    await expect(soon.policies.delete("p")).rejects.toMatchObject({ code: "rate_limited" });
    expect([asked, waits]).toEqual([3, [0, 0]]);
    server?.close();
    asked = 0;
    const late = createAdminClient({ server: await listen(busy("3600")), ...options });
    await expect(late.nodes.list()).rejects.toMatchObject({ code: "rate_limited" });
    expect(asked).toBe(1);
  });

  it("ends when its signal says so, also while it waits to be sent again", async () => {
    const gone = new Error("gone");
    const silent = createAdminClient({ server: await listen(() => {}) });
    const controller = new AbortController();
    const call = silent.nodes.list({ signal: controller.signal });
    controller.abort(gone);
    await expect(call).rejects.toBe(gone);
    await expect(silent.nodes.list({ signal: controller.signal })).rejects.toBe(gone);
    server?.closeAllConnections();
    server?.close();
    const waiting = new AbortController();
    const busy = createAdminClient({
      server: await listen(refuse(429, "rate_limited", { "retry-after": "60" })),
      onWait: () => waiting.abort(gone),
    });
    await expect(busy.nodes.list({ signal: waiting.signal })).rejects.toBe(gone);
  });

  it("says why there is no answer: none in time, no connection", async () => {
    const server = await listen(() => {});
    const silent = createAdminClient({ server, timeoutMs: 10 });
    await expect(silent.nodes.list()).rejects.toMatchObject({ server, reason: "none within 0.01 s" });
    const closed = createAdminClient({ server: "http://127.0.0.1:9" });
    await expect(closed.nodes.list()).rejects.toMatchObject({ reason: "the connection was refused" });
  });

  it("throws a program's own errors where it has some", async () => {
    const own = new Error("mine");
    const admin = createAdminClient({ server: "http://127.0.0.1:9", asError: () => own });
    await expect(admin.nodes.list()).rejects.toBe(own);
  });

  it("is refused before it is sent with a URL or a token that cannot be used, which it does not repeat", () => {
    expect(() => createAdminClient({ server: "10.0.0.5:8090" })).toThrow(/should be a URL/);
    expect(() => createAdminClient({ server: "http://u:p@10.0.0.5" })).toThrow(/must not contain a user/);
    expect(() => createAdminClient({ server: "http://h", token: "hunter 2" })).toThrow(/^token contains (?!.*hunter)/);
  });
});

describe("a list", () => {
  const pages = [{ items: [1, 2], next: "a" }, { items: [3], next: "b" }, { items: [4] }];

  it("comes page by page, as it is read", async () => {
    const { asked, listener } = answer(...pages);
    const admin = createAdminClient({ server: await listen(listener) });
    const seen: unknown[] = [];
    for await (const policy of admin.policies.list({ owner: "identity" })) {
      seen.push(policy);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual([1, 2, 3]);
    expect(asked.map(({ url }) => url)).toEqual([
      "/api/v1/policies?owner=identity&limit=500",
      "/api/v1/policies?owner=identity&after=a&limit=500",
    ]);
  });

  it("is an array of all, or of the first, and asks for no more than that", async () => {
    const { asked, listener } = answer(...pages, { items: [1, 2], next: "a" });
    const admin = createAdminClient({ server: await listen(listener) });
    expect(await admin.policies.list().toArray()).toEqual([1, 2, 3, 4]);
    expect(await admin.policies.list().toArray(2)).toEqual([1, 2]);
    expect(asked[3]?.url).toBe("/api/v1/policies?limit=2");
  });

  it("can go on after a cursor", async () => {
    const { asked, listener } = answer({ items: [4] });
    const admin = createAdminClient({ server: await listen(listener) });
    for await (const { items } of admin.policies.list().pages({ after: "b", limit: 7 })) expect(items).toEqual([4]);
    expect(asked.map(({ url }) => url)).toEqual(["/api/v1/policies?after=b&limit=7"]);
  });
});
