import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { ManualClock } from "sluice";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createAccess, type RunningAccess } from "../../data-plane/access/create-access.ts";
import { parseSettings } from "../../settings/parse-settings.ts";
import { linkWorkers } from "../../testing/link-workers.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { SignInCodes } from "../sessions/sign-in-codes.ts";
import { readConsoleFiles } from "./browser/console-files.ts";
import { limitPolicy } from "./testing/route-examples.ts";
import { createRoleActor, type StartedAdmin, startAdmin } from "./testing/start-admin.ts";

const script = `export const text = ${JSON.stringify("console ".repeat(500))};\n`;
let folder: string;
let admin: StartedAdmin;
let access: RunningAccess;
let codes: SignInCodes;
/** The other worker that the server may ask, and how often it was asked for a code. */
let otherCodes: SignInCodes;
let timesAsked: number;
let logged: LoggedLine[];
let token: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-console-"));
  await mkdir(join(folder, "assets"));
  await writeFile(join(folder, "index.html"), "<!doctype html><title>Sluice</title>");
  await writeFile(join(folder, "favicon.svg"), "<svg/>");
  await writeFile(join(folder, "assets", "index-1a2b.js"), script);
  await writeFile(join(folder, "assets", "index-1a2b.js.map"), "{}");
});

afterAll(() => rm(folder, { recursive: true }));

async function applyTokens(): Promise<void> {
  const tokens = await admin.store.read((view) => view.tokens());
  access.useTokens(
    tokens.flatMap(({ revokedMs, role, ...one }) =>
      revokedMs === undefined ? [{ ...one, role: role as "admin" }] : [],
    ),
  );
}

beforeEach(async () => {
  logged = [];
  const log = createRecordingLog((line) => logged.push(line));
  const reading = parseSettings({}, {});
  if (reading.kind === "problems") throw new Error("settings");
  access = await createAccess(reading.settings, log);
  access.useTokens([]);
  const link = linkWorkers();
  codes = new SignInCodes({ worker: link(1) });
  const other = link(2);
  timesAsked = 0;
  otherCodes = new SignInCodes({
    worker: {
      ...other,
      answer: (topic, render) =>
        other.answer(topic, (question) => {
          timesAsked += 1;
          return render(question);
        }),
    },
  });
  const console = { files: await readConsoleFiles(folder), codes, hosts: ["sluice.example"] };
  admin = await startAdmin({ access, log, console, clock: new ManualClock(1_000_000) });
  const made = await admin.control.tokens.make(createRoleActor("admin"), { name: "ada", role: "admin" });
  token = made.value.token;
  await applyTokens();
});

afterEach(async () => {
  await admin.close();
  access.close();
});

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
  readonly body: Record<string, never>;
}

/** As a browser asks, which `fetch` does not: with a Host and an Origin of our choice, and a path as it is. */
function ask(path: string, { method = "GET", headers = {}, body }: Asked = {}): Promise<Answered> {
  const { hostname, port } = new URL(admin.url);
  const type = body === undefined ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, method, headers: { ...type, ...headers } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const bytes = Buffer.concat(chunks);
        const isJson = /json/.test(response.headers["content-type"] ?? "");
        const { statusCode: status = 0 } = response;
        resolve({ status, headers: response.headers, bytes, body: isJson ? JSON.parse(bytes.toString()) : {} });
      });
    });
    asked.on("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const marked = { "x-sluice-console": "1" };
const fromPage = (): Readonly<Record<string, string>> => ({ ...marked, origin: admin.url });
const signIn = (body: unknown, headers: Readonly<Record<string, string>> = fromPage()): Promise<Answered> =>
  ask("/api/v1/session", { method: "POST", body, headers });

function readCookie({ headers }: Answered): string {
  const [cookie = ""] = headers["set-cookie"] ?? [];
  return cookie.split(";", 1)[0]!;
}

const audit = async () => (await admin.control.audit.list(createRoleActor("admin"))).items;

describe("a session", () => {
  it("begins with a token, is shown without it, and ends", async () => {
    const signedIn = await signIn({ token });
    expect(signedIn.status).toBe(200);
    expect(signedIn.headers["set-cookie"]?.[0]).toMatch(/; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
    expect(signedIn.bytes.toString()).not.toContain(token);
    const cookie = readCookie(signedIn);
    const shown = await ask("/api/v1/session", { headers: { cookie } });
    expect(shown.body).toMatchObject({ name: "ada", role: "admin", by: "cookie", expires_ms: expect.any(Number) });
    expect(shown.body.may).toContain("administer");
    expect(shown.headers["cache-control"]).toBe("no-store");
    const bearer = await ask("/api/v1/session", { headers: { authorization: `Bearer ${token}` } });
    expect(bearer.body).toMatchObject({ name: "ada", by: "bearer" });

    const out = await ask("/api/v1/session", { method: "DELETE", headers: { cookie, ...fromPage() } });
    expect([out.status, readCookie(out)]).toEqual([204, "sluice-session="]);
    expect((await audit()).map(({ action, actor }) => [action, actor]).slice(0, 2)).toEqual([
      ["session.end", "ada"],
      ["session.start", "ada"],
    ]);
    expect(JSON.stringify([logged, await audit()])).not.toContain(token);
  });

  it("ends when its token is revoked", async () => {
    const cookie = readCookie(await signIn({ token }));
    const [{ id } = { id: "" }] = await admin.control.tokens.list(createRoleActor("admin"));
    await admin.control.tokens.make(createRoleActor("admin"), { name: "other", role: "admin" });
    await admin.control.tokens.revoke(createRoleActor("admin"), id);
    await applyTokens();
    expect((await ask("/api/v1/policies", { headers: { cookie } })).status).toBe(401);
  });

  it("needs a token that may read", async () => {
    const made = await admin.control.tokens.make(createRoleActor("admin"), { name: "gate", role: "check" });
    await applyTokens();
    expect((await signIn({ token: made.value.token })).status).toBe(403);
    for (const body of [{}, { token, code: "c" }, { token: 7 }, { token: "x".repeat(600) }, []])
      expect((await signIn(body)).status, JSON.stringify(body)).toBe(400);
  });

  it("is refused after ten failures in a minute, but not with a good token; failures are audited", async () => {
    const answers = [];
    for (let i = 0; i < 11; i++) answers.push((await signIn({ token: `sluice_${i}` })).status);
    expect(answers).toEqual([...new Array<number>(10).fill(401), 429]);
    expect((await signIn({ code: "guessed" })).status).toBe(429);
    expect((await signIn({ token })).status).toBe(200);
    const refused = (await audit()).filter(({ outcome }) => outcome === "refused");
    expect(refused[0]).toMatchObject({ action: "session.start", kind: "session", from: "127.0.0.1" });
    expect(JSON.stringify([refused, logged])).not.toMatch(/sluice_\d|guessed/);
  });

  it("may be asked for by pages that have none, as often as they like: that is no failed log-in", async () => {
    for (let i = 0; i < 20; i++) expect((await ask("/api/v1/session")).status).toBe(401);
    expect((await audit()).filter(({ outcome }) => outcome === "refused")).toEqual([]);
    expect((await signIn({ token: "sluice_wrong" })).status).toBe(401);
    // A token that is not known is one, wherever it is sent to.
    for (let i = 0; i < 9; i++) await ask("/api/v1/session", { headers: { cookie: "sluice-session=sluice_old" } });
    expect((await signIn({ token: "sluice_wrong" })).status).toBe(429);
    for (const path of ["/api/v1/policies", "/api/v1/nodes"]) expect((await ask(path)).status).toBe(429);
  });

  it("does not help a request that sends a bearer token: that counts alone", async () => {
    const cookie = readCookie(await signIn({ token }));
    const answer = await ask("/api/v1/session", { headers: { cookie, authorization: "Bearer sluice_wrong" } });
    expect(answer.status).toBe(401);
  });
});

describe("a code", () => {
  it("of a caller signs in once, as that caller", async () => {
    const made = await ask("/api/v1/session/codes", { method: "POST", headers: { authorization: `Bearer ${token}` } });
    expect(made.status).toBe(201);
    const code = String(made.body.code);
    const signedIn = await signIn({ code });
    expect(signedIn.body).toMatchObject({ name: "ada", role: "admin" });
    expect((await signIn({ code })).body).toMatchObject({
      code: "unauthenticated",
      detail: expect.stringMatching(/used before/),
    });
    expect(JSON.stringify([logged, await audit()])).not.toContain(code);
  });

  it("is looked for at other workers ten times a minute for an address, and a good one is found there", async () => {
    const { code } = otherCodes.make({ kind: "token", token }, "ada")!;
    expect((await signIn({ code })).body).toMatchObject({ name: "ada" });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => signIn({ code: `guessed ${i}` })));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...new Array<number>(9).fill(401), ...new Array<number>(21).fill(429)]);
    expect(timesAsked).toBe(10);
    // One made by the worker that is asked needs no other.
    const own = codes.make({ kind: "token", token }, "ada")!;
    expect((await signIn({ code: own.code })).status).toBe(200);
  });

  it("of the start signs in with a new token that ends within hours, and is revoked by signing out", async () => {
    const { code } = codes.make({ kind: "new admin" }, "start")!;
    const watching = setInterval(() => void applyTokens(), 20);
    const signedIn = await signIn({ code }).finally(() => clearInterval(watching));
    expect(signedIn.status).toBe(200);
    expect(signedIn.body).toMatchObject({ name: expect.stringMatching(/^console\//), role: "admin" });
    const cookie = readCookie(signedIn);
    const own = async () =>
      (await admin.control.tokens.list(createRoleActor("admin"))).find(({ name }) => name.startsWith("console/"));
    const { expiresMs = 0, createdMs = 0 } = (await own()) ?? {};
    expect(expiresMs).toBeGreaterThan(createdMs);
    expect(expiresMs).toBeLessThanOrEqual(createdMs + 12 * 3_600_000);
    expect((await audit()).find(({ action }) => action === "token.make")).toMatchObject({ actor: "sluice" });
    await ask("/api/v1/session", { method: "DELETE", headers: { cookie, ...fromPage() } });
    expect((await own())?.revokedMs).toBeDefined();
  });

  it("of the start signs out with an error in the log if its token cannot be revoked", async () => {
    const { code } = codes.make({ kind: "new admin" }, "start")!;
    const watching = setInterval(() => void applyTokens(), 20);
    const signedIn = await signIn({ code }).finally(() => clearInterval(watching));
    const made = await admin.control.tokens.list(createRoleActor("admin"));
    const { id, name } = made.find((one) => one.name.startsWith("console/"))!;
    const cookie = readCookie(signedIn);
    await admin.store.close();
    const out = await ask("/api/v1/session", { method: "DELETE", headers: { cookie, ...fromPage() } });
    expect([out.status, readCookie(out)]).toEqual([204, "sluice-session="]);
    expect(logged.find(({ event }) => event === "session.revoke_failed")).toMatchObject({
      level: "error",
      fields: { caller: name, token: id, reason: expect.any(String) },
    });
    expect(JSON.stringify(logged)).not.toContain(cookie.split("=")[1]);
  });

  it("makes no token that counts as the last admin, and no one else may use its names", async () => {
    const [{ id } = { id: "" }] = await admin.control.tokens.list(createRoleActor("admin"));
    await admin.control.tokens.makeForConsole(createRoleActor("admin"));
    await expect(admin.control.tokens.revoke(createRoleActor("admin"), id)).rejects.toThrow(/last token/);
    await expect(
      admin.control.tokens.make(createRoleActor("admin"), { name: "console/mine", role: "viewer" }),
    ).rejects.toMatchObject({ problems: [{ path: ["name"] }] });
  });
});

describe("pages of other origins", () => {
  const foreign = { origin: "http://127.0.0.1:3000" };

  it("change nothing with the cookie (CSRF)", async () => {
    const cookie = readCookie(await signIn({ token }));
    const put = (headers: Readonly<Record<string, string>>): Promise<Answered> =>
      ask("/api/v1/policies/orders", {
        method: "PUT",
        body: limitPolicy("orders", 10),
        headers: { cookie, ...headers },
      });
    const attacks = [
      {},
      foreign,
      { ...marked, ...foreign },
      { origin: admin.url },
      { ...marked, "sec-fetch-site": "same-site" },
    ];
    for (const headers of attacks)
      expect((await put(headers)).body, JSON.stringify(headers)).toMatchObject({ code: "permission_denied" });
    expect((await put(fromPage())).status).toBe(201);
    expect((await audit()).filter(({ outcome }) => outcome === "refused")).toHaveLength(attacks.length);
  });

  it("do not sign anyone in or out", async () => {
    const cookie = readCookie(await signIn({ token }));
    for (const headers of [{}, { ...marked, ...foreign }, { origin: admin.url }]) {
      expect((await signIn({ token }, headers)).status).toBe(403);
      const out = await ask("/api/v1/session", { method: "DELETE", headers: { cookie, ...headers } });
      expect([out.status, out.headers["set-cookie"]]).toEqual([403, undefined]);
    }
  });

  it("read nothing under a foreign name that leads here (DNS rebinding)", async () => {
    const cookie = readCookie(await signIn({ token }));
    const host = "rebound.example:8090";
    expect((await ask("/api/v1/policies", { headers: { cookie, host } })).status).toBe(403);
    expect((await ask("/", { headers: { host } })).status).toBe(403);
    expect((await signIn({ token }, { ...marked, host, origin: `http://${host}` })).status).toBe(403);
    // A client with a token may call us as it likes.
    const authorization = `Bearer ${token}`;
    expect((await ask("/api/v1/policies", { headers: { authorization, host } })).status).toBe(200);
    for (const good of ["sluice.example", "localhost:1"])
      expect((await ask("/api/v1/policies", { headers: { cookie, host: good } })).status, good).toBe(200);
  });

  it("do not frame the page (clickjacking), nor run scripts in it", async () => {
    const { headers } = await ask("/");
    const policy = String(headers["content-security-policy"]);
    expect(policy).toMatch(/default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/);
    expect(policy).not.toMatch(/unsafe|\*/);
    expect(headers).toMatchObject({
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
  });
});

describe("the page", () => {
  it("is served at its views, with its files, and nowhere else", async () => {
    for (const path of ["/", "/policies/orders/edit", "/subjects/ip/10.0.0.1", "/live?policy=a", "/sign-in"]) {
      const answer = await ask(path);
      expect([answer.status, answer.headers["content-type"]], path).toEqual([200, "text/html; charset=utf-8"]);
      expect(answer.headers["cache-control"]).toBe("no-cache");
    }
    const others = ["/api/v1/nothing", "/api", "/rules/a/b", "/v1/check", "/assets/gone.js", "/assets/", "/robots.txt"];
    const climbing = [
      "/assets/../../etc/passwd",
      "/../index.js",
      "/assets/..%2findex.html",
      "/assets/index-1a2b.js.map",
    ];
    for (const path of [...others, ...climbing]) {
      const answer = await ask(path);
      expect(answer.status, path).toBe(path === "/../index.js" ? 200 : 404);
      expect(answer.bytes.toString(), path).not.toMatch(/root:|console console/);
    }
    expect((await ask("/", { method: "POST", body: {} })).status).toBe(404);
    // Nothing in a path leads a browser to another host.
    expect((await ask("//evil.example/")).headers.location).toBeUndefined();
  });

  it("sends hashed files to be kept forever, compressed as the client likes, and the rest when it changed", async () => {
    const path = "/assets/index-1a2b.js";
    const plain = await ask(path);
    expect(plain.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect(plain.bytes.toString()).toBe(script);
    const br = await ask(path, { headers: { "accept-encoding": "gzip, deflate, br" } });
    expect([br.headers["content-encoding"], br.headers.vary]).toEqual(["br", "accept-encoding"]);
    expect(brotliDecompressSync(br.bytes).toString()).toBe(script);
    const gz = await ask(path, { headers: { "accept-encoding": "br;q=0, gzip" } });
    expect(gunzipSync(gz.bytes).toString()).toBe(script);
    const head = await ask(path, { method: "HEAD" });
    expect([head.status, head.bytes.length, head.headers["content-length"]]).toEqual([200, 0, String(script.length)]);
    const page = await ask("/");
    const again = await ask("/", { headers: { "if-none-match": String(page.headers.etag) } });
    expect([again.status, again.bytes.length]).toEqual([304, 0]);
    expect((await ask("/favicon.svg")).headers["content-type"]).toBe("image/svg+xml");
  });

  it("says so where the console is not built, and is not there where it is off", async () => {
    await admin.close();
    admin = await startAdmin({ console: { files: "missing", codes } });
    expect((await ask("/policies")).bytes.toString()).toContain("The console is not built");
    await admin.close();
    admin = await startAdmin({ console: { files: "off", codes } });
    expect((await ask("/")).status).toBe(404);
  });
});
