import { connect } from "node:net";
import { createLimiter } from "sluice";
import { failingCounters } from "sluice/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type StartedHttp, startHttp } from "../testing/start-http.ts";

const policies = {
  policies: [
    { id: "login", match: { endpoint: "/login", method: "POST" }, limits: [{ by: ["ip"], windows: ["1/h"] }] },
    { id: "orders", match: { endpoint: "/v1/orders/**" }, limits: [{ by: ["user"], windows: ["2/h"] }] },
    { id: "named", match: { endpoint: "/never" }, limits: [{ by: ["tenant"], windows: ["10/h"] }] },
  ],
  default: "none",
};

let server: StartedHttp;
let count = 0;
let user: string;
let ip: string;

beforeAll(async () => {
  const authorizeDimensions = { user: "x-user-id", tenant: "x-tenant" };
  server = await startHttp(createLimiter({ policies }), { authorizeDimensions });
});

afterAll(() => server.close());

beforeEach(() => {
  count += 1;
  user = `user-${count}`;
  ip = `198.51.100.${count}`;
});

type Sent = Readonly<Record<string, string>>;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(headers: Sent, query = "", method = "GET", url = server.url): Promise<Answer> {
  const response = await fetch(`${url}/v1/authorize${query}`, { method, headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: text === "" ? {} : JSON.parse(text) };
}

/** Header lines as they are, each character a byte, which no client of HTTP would send so. */
function sendLines(url: string, lines: readonly string[], query = ""): Promise<string> {
  const { hostname, port } = new URL(url);
  const request = [`GET /v1/authorize${query} HTTP/1.1`, "Host: h", "Connection: close", ...lines, "", ""].join("\r\n");
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(Buffer.from(request, "latin1")));
    let answer = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      answer += text;
    });
    socket.on("error", reject).on("close", () => resolve(answer));
  });
}

const orders = (): Sent => ({ "x-user-id": user, "x-original-uri": "/v1/orders/7?page=2" });
const login = (): Sent => ({ "x-original-uri": "/login", "x-original-method": "POST", "x-real-ip": ip });

describe("GET /v1/authorize", () => {
  it("answers 204 without a body, and shows how the caller stands", async () => {
    const { status, headers, text } = await ask(orders());
    expect([status, text]).toEqual([204, ""]);
    expect(headers.get("x-ratelimit-limit")).toBe("2");
    expect(headers.get("x-ratelimit-remaining")).toBe("1");
    expect(headers.get("ratelimit")).toContain("r=1");
    expect(headers.get("content-type")).toBeNull();
    expect(headers.get("content-length")).toBeNull();
    expect(headers.get("retry-after")).toBeNull();
  });

  it("answers 429 with a problem body and Retry-After", async () => {
    for (let times = 0; times < 2; times++) expect((await ask(orders())).status).toBe(204);
    const { status, headers, body } = await ask(orders());
    expect(status).toBe(429);
    expect(headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(headers.get("x-sluice-status")).toBeNull();
    expect(body).toMatchObject({ status: 429, allowed: false, policy: "orders", reason: "over_limit" });
  });

  it("answers 403 if nothing else is passed on, and says what it would have been", async () => {
    expect((await ask(login(), "?deny=403")).status).toBe(204);
    const { status, headers, body } = await ask(login(), "?deny=403");
    expect(status).toBe(403);
    expect(headers.get("x-sluice-status")).toBe("429");
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(body).toMatchObject({ status: 429, policy: "login" });
  });

  it.each(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("is asked by %s", async (method) => {
    expect((await ask(orders(), "", method)).status).toBe(204);
    expect((await ask({ ...orders() }, "?cost=2", method)).status).toBe(429);
  });

  it("answers without waiting for a body, whatever it is said to be, and closes the connection after it", async () => {
    const response = await fetch(`${server.url}/v1/authorize`, {
      method: "POST",
      headers: { ...orders(), "content-type": "multipart/form-data" },
      body: "--x",
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("connection")).toBe("close");
  });

  it("passes requests that no policy limits, and needs no header at all", async () => {
    const { status, headers } = await ask({});
    expect(status).toBe(204);
    expect(headers.get("x-ratelimit-limit")).toBeNull();
  });

  it("treats an empty header as absent", async () => {
    expect((await ask({ "x-user-id": "", "x-original-uri": "", "x-real-ip": " " })).status).toBe(204);
  });
});

describe("the headers of a gateway", () => {
  it("are nginx's, or those that Traefik and Caddy send", async () => {
    const traefik = {
      "x-forwarded-method": "POST",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "shop.example",
      "x-forwarded-uri": "/login?next=%2F",
      "x-forwarded-for": `203.0.113.9, ${ip}`,
    };
    expect((await ask(traefik)).headers.get("x-ratelimit-policy")).toBe("login");
    expect((await ask(login())).status).toBe(429);
  });

  it("give the same path for all its spellings", async () => {
    expect((await ask(login())).status).toBe(204);
    for (const uri of ["//login", "/x/../login", "/LOGIN/", "/%6cogin", "/login?x=1", "/login#x", "http://a/login"])
      expect((await ask({ ...login(), "x-original-uri": uri })).status, uri).toBe(429);
  });

  it("give the path as every server may read it, and as UTF-8 if it is that", async () => {
    const cafe = {
      policies: [{ id: "cafe", match: { endpoint: "/café" }, limits: [{ windows: ["1/h"] }] }],
      default: "none",
    };
    const other = await startHttp(createLimiter({ policies: cafe }));
    try {
      const fetchStatus = async (path: string): Promise<string> =>
        (await sendLines(other.url, [`X-Original-URI: ${path}`])).slice(9, 12);
      expect(await fetchStatus("/caf%C3%A9")).toBe("204");
      for (const path of [
        "/caf\u00c3\u00a9",
        "/CAF\u00c3\u0089",
        "/caf\u00c3%a9",
        "//x/caf\u00c3\u00a9",
        "/x#/../caf%C3%A9",
      ])
        expect(await fetchStatus(path), path).toBe("429");
    } finally {
      await other.close();
    }
  });

  it.each([
    ["x-original-uri", ["X-Original-URI: /free", "X-Original-URI: /login"]],
    ["x-forwarded-uri", ["X-Forwarded-Uri: /login", "x-forwarded-uri: /login"]],
    ["x-real-ip", ["X-Real-IP: 192.0.2.1", "X-Real-IP: 192.0.2.2"]],
    ["x-user-id", ["X-User-Id: a", "X-User-Id: b"]],
  ])("are refused if there are two of one: %s", async (header, lines) => {
    expect(await sendLines(server.url, lines)).toMatch(new RegExp(`^HTTP/1.1 400 .*${header} must be sent once`, "s"));
    expect(await sendLines(server.url, lines, "?deny=403")).toMatch(/^HTTP\/1.1 403 .*x-sluice-status: 400/is);
  });

  it("may continue in a second line if they are a list of addresses", async () => {
    const lines = [
      "X-Original-URI: /login",
      "X-Original-Method: POST",
      "X-Forwarded-For: 1.2.3.4",
      `X-Forwarded-For: ${ip}`,
    ];
    expect(await sendLines(server.url, lines)).toMatch(/^HTTP\/1.1 204 /);
    expect((await ask(login())).status).toBe(429);
  });

  it("are refused, and not left without an answer, for a path that can be read in too many ways", async () => {
    const headers = { "x-original-uri": `//h${"/a;b\\c/..%2fd;e%5c../%2e%2e//".repeat(130)}` };
    expect((await ask(headers)).status).toBe(400);
    const as403 = await ask(headers, "?deny=403");
    expect([as403.status, as403.headers.get("x-sluice-status")]).toEqual([403, "400"]);
  });

  it("count the last address of X-Forwarded-For, since all before may be made up", async () => {
    const { "x-real-ip": _, ...rest } = login();
    const ask1 = (forwarded: string): Promise<Answer> => ask({ ...rest, "x-forwarded-for": forwarded });
    expect((await ask1(`1.2.3.4, ${ip}`)).status).toBe(204);
    expect((await ask1(`5.6.7.8,junk, ${ip}`)).status).toBe(429);
    expect((await ask1(`${ip}:4711`)).status).toBe(429);
  });

  it("count X-Real-IP before X-Forwarded-For", async () => {
    expect((await ask({ ...login(), "x-forwarded-for": "1.2.3.4" })).status).toBe(204);
    expect((await ask({ ...login(), "x-forwarded-for": "5.6.7.8" })).status).toBe(429);
  });

  it.each([
    ["x-real-ip", { "x-real-ip": "not an address" }],
    ["x-forwarded-for", { "x-forwarded-for": "203.0.113.7, junk" }],
    ["x-original-method", { "x-original-method": "GET /" }],
    ["x-original-uri", { "x-original-uri": `/${"x".repeat(5_000)}` }],
    ["x-user-id", { "x-user-id": "u".repeat(5_000) }],
    ["x-original-uri", { "x-original-uri": "/login", "x-forwarded-uri": "/free" }],
    ["x-original-method", { "x-original-method": "GET", "x-forwarded-method": "POST" }],
  ])("are named if they are wrong: %s", async (header, headers) => {
    const plain = await ask(headers);
    expect(plain.status).toBe(400);
    expect(plain.body).toMatchObject({ code: "invalid_request", problems: [{ field: header }] });
    // Its client could make a gateway that passes requests without an answer let it pass.
    const as403 = await ask(headers, "?deny=403");
    expect([as403.status, as403.headers.get("x-sluice-status")]).toEqual([403, "400"]);
  });

  it("may have a long query", async () => {
    const uri = `/v1/orders/7?${"x".repeat(6_000)}`;
    expect((await ask({ ...orders(), "x-original-uri": uri })).headers.get("x-ratelimit-policy")).toBe("orders");
  });

  it("are any that are configured, in place of the usual ones too", async () => {
    const authorizeDimensions = { ip: "x-client", endpoint: "x-path", method: "x-verb" };
    const other = await startHttp(createLimiter({ policies }), { authorizeDimensions });
    try {
      const headers = { "x-client": ip, "x-path": "/login", "x-verb": "post" };
      expect((await ask(headers, "", "GET", other.url)).headers.get("x-ratelimit-policy")).toBe("login");
      const forged = { ...headers, "x-real-ip": "1.2.3.4", "x-original-uri": "/free", "x-original-method": "GET" };
      expect((await ask(forged, "", "GET", other.url)).status).toBe(429);
    } finally {
      await other.close();
    }
  });
});

describe("the parameters of a sub-request", () => {
  it("ask policies by id, at a cost", async () => {
    const headers = { "x-tenant": user };
    const { status, headers: told } = await ask(headers, "?policy=named&cost=8");
    expect([status, told.get("x-ratelimit-remaining")]).toEqual([204, "2"]);
    expect((await ask({ ...headers, "x-user-id": user }, "?policy=named&policy=orders&cost=2")).status).toBe(204);
    expect((await ask(headers, "?policy=named&cost=1")).status).toBe(429);
  });

  it("ask another family of policies", async () => {
    expect((await ask(login(), "?domain=elsewhere")).headers.get("x-ratelimit-policy")).toBeNull();
  });

  it.each([
    ["polcy", "?polcy=login"],
    ["cost", "?cost=0"],
    ["cost", "?cost=1e3"],
    ["cost", "?cost=100001"],
    ["cost", "?cost=1&cost=2"],
    ["deny", "?deny=401"],
    ["domain", "?domain="],
    ["policy", `?${"policy=a&".repeat(33)}`],
  ])("are named if they are wrong: %s in %s", async (field, query) => {
    const { status, headers, body } = await ask(orders(), query);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: "invalid_request", problems: [{ field }] });
    expect(headers.get("x-sluice-status")).toBeNull();
  });

  it("report unknown policies, whatever is asked for: that is the gateway's configuration", async () => {
    const { status, body } = await ask(orders(), "?policy=nowhere&deny=403");
    expect([status, body.code]).toEqual([400, "policy_not_found"]);
  });

  it("are not taken from the client, whose query a gateway may have left on", async () => {
    const headers = { "x-tenant": user, "x-forwarded-uri": "/x?policy=named&cost=1" };
    const { status, body } = await ask(headers, "?policy=named&cost=1");
    expect(status).toBe(400);
    expect(body).toMatchObject({ problems: [{ field: "x-forwarded-uri" }] });
    expect((await ask(headers, "?policy=named&cost=2")).status).toBe(204);
  });

  it.each([
    ["x-forwarded-uri", "/x?cost=1", "?cost=1"],
    ["x-original-uri", "/x?cost=1", "?cost=1"],
    ["x-forwarded-uri", "/x?cost=1", "?policy=named&cost=1"],
    ["x-original-uri", "/x?cost=1&domain=free", "?domain=free&deny=403&cost=1"],
    ["x-forwarded-uri", "/x?%63ost=%31", "?policy=named&cost=1"],
    ["x-forwarded-uri", "/x?&cost=1&#fragment", "?cost=1"],
    ["x-forwarded-uri", "/x?nothing=ours", "?nothing=ours"],
  ])("are not taken from the client if the gateway added its query: %s: %s as %s", async (header, uri, query) => {
    const { status, headers, body } = await ask({ "x-tenant": user, [header]: uri }, query);
    expect(query.includes("deny=403") ? [status, headers.get("x-sluice-status")] : [status, "400"]).toEqual([
      query.includes("deny=403") ? 403 : 400,
      "400",
    ]);
    expect(body).toMatchObject({ problems: [{ field: header }] });
  });

  it("are unaffected by anything else a client sends", async () => {
    const headers = {
      ...{ "x-tenant": user, "x-original-uri": "/x?cost=9&policy=orders&preview=true", "x-idempotency-key": "k" },
      ...{ "x-sluice-cost": "9", "x-sluice-policy": "orders", "x-sluice-domain": "free", cost: "9", id: "k" },
    };
    for (const remaining of ["9", "8"]) {
      const { status, headers: told } = await ask(headers, "?policy=named");
      expect([status, told.get("x-ratelimit-remaining")]).toEqual([204, remaining]);
    }
  });
});

describe("unavailable counters", () => {
  const counters = failingCounters();

  it("cause 503 under policies that fail closed, which is a refusal, and pass under those that fail open", async () => {
    const limits = [{ by: ["user"], windows: ["4/h"] }];
    const policies = ["open", "closed"].map((id) => ({ id, match: { endpoint: `/${id}` }, on_failure: id, limits }));
    const away = await startHttp(createLimiter({ policies: { policies }, counters }), {
      authorizeDimensions: { user: "x-user-id" },
    });
    try {
      const of = (path: string, query = ""): Promise<Answer> =>
        ask({ "x-user-id": user, "x-original-uri": path }, query, "GET", away.url);
      expect((await of("/open")).status).toBe(204);
      const closed = await of("/closed");
      expect(closed.status).toBe(503);
      expect(closed.headers.get("x-ratelimit-degraded")).toBe("true");
      expect(closed.body).toMatchObject({ reason: "degraded" });
      const as403 = await of("/closed", "?deny=403");
      expect([as403.status, as403.headers.get("x-sluice-status")]).toEqual([403, "503"]);
    } finally {
      await away.close();
    }
  });
});
