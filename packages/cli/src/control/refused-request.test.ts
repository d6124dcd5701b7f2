import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { withAdvice, withSubjectAdvice } from "./conflict-advice.ts";
import { type OpenAdminOptions, openAdminClient } from "./control-session.ts";
import { RefusedRequest } from "./refused-request.ts";

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

function problem(status: number, code: string, more: object = {}): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { "content-type": "application/problem+json" });
    response.end(JSON.stringify({ type: "about:blank", title: "", status, code, detail: "that is so", ...more }));
  };
}

async function catchRefusal(
  listener: RequestListener,
  options: Partial<OpenAdminOptions> = {},
): Promise<RefusedRequest> {
  const admin = await listen(listener);
  return openAdminClient({ admin, ...options })
    .nodes.list()
    .then(
      () => expect.unreachable(),
      (error: RefusedRequest) => error,
    );
}

describe("a client of the control plane", () => {
  it.each([
    [401, "unauthenticated", 3, /needs a token\. Put one into SLUICE_TOKEN/],
    [403, "permission_denied", 3, /^not allowed: that is so$/],
    [404, "resource_not_found", 1, /^that is so$/],
    [404, "not_found", 5, /is it the admin port/],
    [409, "version_conflict", 4, /^that is so$/],
    [409, "already_exists", 4, /^that is so$/],
    [400, "invalid_policies", 1, /^that is so$/],
    [429, "rate_limited", 5, /asked too often/],
    [503, "policy_store_unavailable", 5, /^that is so$/],
    [500, "internal", 2, /^that is so$/],
  ] as const)("tells %i %s apart by its exit code", async (status, code, exitCode, message) => {
    const refusal = await catchRefusal(problem(status, code));
    expect(refusal).toMatchObject({ exitCode, message: expect.stringMatching(message) });
  });

  it("lists every problem with its field, and nothing that a terminal obeys", async () => {
    const problems = [
      { field: "limits[0]", message: "is \u001b[2Jwrong" },
      { field: "(root)", message: "is odd" },
    ];
    const { message } = await catchRefusal(
      problem(400, "invalid_policies", { detail: "2 problems:\n and more", problems }),
    );
    expect(message).toBe("2 problems:\n  limits[0]: is \\u001b[2Jwrong\n  is odd");
  });

  it("waits where it is told to, and asks again", async () => {
    let times = 0;
    const told: string[] = [];
    const admin = await listen((request, response) => {
      times += 1;
      if (times > 1) return response.setHeader("content-type", "application/json").end('{"generation":7}');
      response.setHeader("retry-after", "0");
      return problem(429, "rate_limited")(request, response);
    });
    const client = openAdminClient({ admin, write: (text) => told.push(text) });
    expect(await client.nodes.list()).toEqual({ generation: 7 });
    expect(told).toHaveLength(1);
  });

  it("does not wait for hours, nor for ever", async () => {
    const later = (seconds: string): RequestListener => {
      return (request, response) => {
        response.setHeader("retry-after", seconds);
        problem(429, "rate_limited")(request, response);
      };
    };
    expect(await catchRefusal(later("3600"))).toMatchObject({ exitCode: 5 });
    expect(await catchRefusal(later("0"))).toMatchObject({ exitCode: 5 });
  });

  it("takes nothing for an answer that is none", async () => {
    const html: RequestListener = (_request, response) => response.setHeader("content-type", "text/html").end("<p>hi");
    expect(await catchRefusal(html)).toMatchObject({
      message: expect.stringContaining("not as a control plane does: <p>hi"),
    });
    const elsewhere: RequestListener = (_request, response) =>
      response.writeHead(302, { location: "http://127.0.0.1:9/" }).end();
    expect(await catchRefusal(elsewhere)).toMatchObject({ exitCode: 5 });
    const broken: RequestListener = (request) => request.socket.destroy();
    expect(await catchRefusal(broken)).toMatchObject({ exitCode: 5 });
  });

  it("tells a token that is refused from one that is missing, and shows neither", async () => {
    const refusal = await catchRefusal(problem(401, "unauthenticated"), { token: "hunter2", tokenSource: "the-file" });
    expect(refusal.message).toBe("the token in the-file is not accepted: that is so");
    const admin = await listen(problem(401, "unauthenticated"));
    expect(() => openAdminClient({ admin, token: "hunter 2", tokenSource: "the-file" })).toThrow(
      /^the-file holds (?!.*hunter)/,
    );
  });
});

describe("advice on a conflict", () => {
  it("of a subject says what is there now, on one line for each terminal", () => {
    const limit = { policy: "p", windows: ["1/s", "9/m"], reason: "a\u001b[2J sale", author: "alice", at_ms: 0 };
    const current = {
      dimension: "user",
      value: "u1",
      version: 5,
      limits: [limit, { ...limit, limit: "l", until_ms: 60_000 }],
    };
    const told = (subject: object): string => {
      const error = new RefusedRequest("no", 4, { code: "version_conflict", current: { ...current, ...subject } });
      return (withSubjectAdvice(error, "user=u1", 0) as RefusedRequest).message;
    };
    expect(told({})).toBe(
      "user=u1 was changed by another command meanwhile, so nothing was done. Now it has no tier; " +
        "1/s, 9/m in p, for good, by alice: a\\u001b[2J sale; 1/s, 9/m in p / l, until 1970-01-01 00:01:00 UTC (in 1m), by alice: a\\u001b[2J sale. " +
        "Run the command again to change that.",
    );
    expect(told({ tier: "gold", limits: [] })).toContain("Now it has tier gold. Run");
    for (const error of [new RefusedRequest("x", 4, { code: "version_conflict" }), new Error("y")])
      expect(withSubjectAdvice(error, "user=u1", 0)).toBe(error);
  });

  const conflict = (current: number | undefined): RefusedRequest =>
    new RefusedRequest("no", 4, {
      code: "version_conflict",
      ...(current !== undefined && { current_version: current }),
    });

  it.each([
    [
      5,
      3,
      "policy p is at version 5 by now; it was at version 3 when this was planned. See what changed: sluice policy diff p --from 3 --to 5;",
    ],
    [
      5,
      0,
      "policy p is at version 5 by now; there was none when this was planned. See what changed: sluice policy diff p --to 5;",
    ],
    [
      0,
      3,
      "policy p is gone by now; it was at version 3 when this was planned. See what changed: sluice policy history p;",
    ],
  ])("where %i is there and %i was expected says what to look at", (current, expected, text) => {
    expect((withAdvice(conflict(current), "p", expected) as Error).message).toContain(text);
  });

  it("leaves every other error as it is", () => {
    for (const error of [
      conflict(undefined),
      conflict(3),
      new RefusedRequest("x", 3, { code: "permission_denied" }),
      new Error("y"),
    ])
      expect(withAdvice(error, "p", 3)).toBe(error);
  });
});
