import { describe, expect, it } from "vitest";
import { createLogger } from "./logger.ts";

function capture(): { text: string; write(text: string): void } {
  return {
    text: "",
    write(text: string): void {
      this.text += text;
    },
  };
}

describe("the logger", () => {
  it("writes one JSON object per line to stdout in json format", () => {
    const stdout = capture();
    const stderr = capture();
    const log = createLogger({ level: "info", format: "json", stdout, stderr });
    log.info("policies.reloaded", { generation: 3 });
    log.debug("policies.unchanged");
    const lines = stdout.text.trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toMatchObject({
      level: "info",
      event: "policies.reloaded",
      message: "policies reloaded",
      generation: 3,
    });
    expect(JSON.parse(lines[0]!).time).toMatch(/^\d{4}-\d\d-\d\dT/);
    expect(stderr.text).toBe("");
  });

  it("writes a readable line to stderr in text format, with every problem below it", () => {
    const stdout = capture();
    const stderr = capture();
    const log = createLogger({ level: "warn", format: "text", stdout, stderr });
    const place = { file: "p.yaml", line: 4, column: 7 };
    log.warn("policies.warnings", {
      file: "p.yaml",
      problems: [{ path: ["policies", 0], message: "is wrong", place }],
    });
    expect(stderr.text).toMatch(
      /^\d\d:\d\d:\d\d warn {2}policies have warnings file=p\.yaml event=policies\.warnings\n {2}p\.yaml:4:7 policies\[0\]: is wrong\n$/,
    );
    expect(stdout.text).toBe("");
  });

  /** What is logged of these fields, as it is written. */
  function logged(fields: Readonly<Record<string, unknown>>, format: "json" | "text" = "json"): string {
    const output = capture();
    createLogger({ level: "trace", format, stdout: output, stderr: output }).error("http.request_failed", fields);
    if (format === "json") expect(() => JSON.parse(output.text)).not.toThrow();
    return output.text;
  }

  const secret = "t0p-secret.value";

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ["a field", { token: secret }],
    ["headers", { headers: { authorization: `Bearer ${secret}`, "X-Api-Key": secret, cookie: `sid=${secret}` } }],
    ["a field far down", { a: { b: { c: [{ d: { redis_password: secret } }] } } }],
    ["a list", { headers: { "set-cookie": [`a=${secret}`, "b=1"] } }],
    ["a header as text", { line: `Proxy-Authorization: Basic ${secret}` }],
    ["a bearer token as text", { reason: `401 for "Bearer ${secret}"` }],
    ["an address", { servers: `rediss://sluice:${secret}@db.internal:6379/0` }],
    ["an address without a user", { url: `redis://:${secret}@127.0.0.1` }],
    ["an address whose password has signs in it", { url: `https://u:p/${secret}:x@collector:4318` }],
    ["an address whose password has an at sign in it", { url: `redis://u:p@${secret}@db.internal/0` }],
    ["two addresses", { servers: `redis://u:${secret}@a:1,redis://u:${secret}@b:2` }],
    ["an error", { err: new Error(`cannot reach redis://u:${secret}@h`) }],
    ["what hangs on an error", { err: Object.assign(new Error("no"), { config: { password: secret } }) }],
    ["a key", { err: new Error(`-----BEGIN EC PRIVATE KEY-----\n${secret}\n-----END EC PRIVATE KEY-----`) }],
    ["a dimension", { dimensions: { api_key: secret, user: "ann" } }],
    ["a value with quotes", { password: `"${secret}"` }],
  ])("blots out a secret in %s", (_where, fields) => {
    for (const format of ["json", "text"] as const) {
      expect(logged({ ...fields, accept: "*/*" }, format)).not.toContain(secret);
      expect(logged({ ...fields, accept: "*/*" }, format)).toContain("*/*");
    }
  });

  it("writes nothing that a terminal would obey", () => {
    const text = logged({ dimensions: { user: "a\u001b[2Jb\u009b1mc\u007f" }, path: "x\u001b[31m" }, "text");
    expect(text.trimEnd()).toMatch(/^[^\p{Cc}]+$/u);
    expect(text).toContain("\\u001b[2Jb");
  });

  it("writes no line that something outside made up, in an error, a problem or a value", () => {
    const forged = "no\n12:00:00 info  all is well\r12:00:00 info  indeed\u2028x";
    const err = new Error(forged);
    const problems = [{ path: ["a\nb"], message: forged }];
    const text = logged({ err, problems, dimensions: { "user\n1": forged }, reason: forged }, "text");
    const starts = text.split("\n").filter((line) => /^\d/.test(line));
    expect(starts).toHaveLength(1);
    expect(text).not.toMatch(/[\r\u2028]/);
  });

  it("writes JSON that a terminal does not obey, and that means the same", () => {
    const dimensions = { user: "a\u009b2Jb\u202ec" };
    const text = logged({ dimensions });
    expect(text.trimEnd()).toMatch(/^[^\p{Cc}\u202e]+$/u);
    expect(JSON.parse(text)).toMatchObject({ dimensions });
  });

  it("writes a bounded line, whatever it is given, and says what it left out", () => {
    const huge = "a".repeat(5_000_000);
    const err = Object.assign(new Error(`ERR ${huge}`), {
      command: { name: "auth", args: [secret] },
      cause: new Error(huge),
    });
    const endless: Record<string, unknown> = {};
    endless.again = endless;
    const fields = {
      ...{ err, endless, reason: huge, bytes: Buffer.alloc(1_000_000), "…": 1, [huge]: 1, at: new Date(0), big: 1n },
      list: Array.from({ length: 100_000 }, (_, i) => `${i} ${huge}`),
      ...JSON.parse('{"__proto__":{"x":1}}'),
      get broken(): string {
        return "fine";
      },
      worse: {
        toJSON() {
          throw new Error("cannot");
        },
      },
    };
    for (const format of ["json", "text"] as const) {
      const text = logged(fields, format);
      expect(text.length).toBeLessThan(64_000);
      expect(text).toContain("5000004 characters");
      expect(text).not.toContain(secret);
    }
  });

  it("says the event and its sentence, whatever the fields are called", () => {
    const line = JSON.parse(logged({ event: secret, message: secret }));
    expect(line).toMatchObject({ event: "http.request_failed", message: "a request failed" });
  });

  it("leaves alone what only sounds like a secret", () => {
    const fields = { tokens: "/etc/tokens", tokens_remaining: 3, url: "http://127.0.0.1:8080/v1/check", cookies: 2 };
    expect(JSON.parse(logged(fields))).toMatchObject(fields);
  });

  it("logs callers as hashes if configured: the same for the same, and never the value", () => {
    const stdout = capture();
    const log = createLogger({ level: "info", format: "json", stdout, stderr: capture(), hashSubjects: true });
    const dimensions = { user: "ann@example.com", ip: "203.0.113.7", method: "GET", endpoint: "/users/4711" };
    log.info("counters.reset", { dimensions });
    log.info("counters.reset", { dimensions: { user: "ann@example.com", tenant: "203.0.113.7" } });
    expect(stdout.text).not.toMatch(/ann@|203\.0\.113|users\/4711/);
    const [first, second] = stdout.text
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { dimensions: Record<string, string> }).dimensions);
    expect(first).toEqual({
      ...{ user: expect.stringMatching(/^#[0-9a-f]{12}$/), ip: expect.stringMatching(/^#/) },
      ...{ method: "GET", endpoint: expect.stringMatching(/^#/) },
    });
    expect(second).toEqual({ user: first!.user, tenant: first!.ip });
  });

  it("bounds particulars of one kind to a thousand a second", () => {
    let nowMs = 0;
    const stdout = capture();
    const log = createLogger({ level: "debug", format: "json", stdout, stderr: capture(), nowMs: () => nowMs });
    for (let i = 0; i < 3_000; i++) log.debug("tls.handshake_failed", { i });
    expect(stdout.text.trimEnd().split("\n")).toHaveLength(1_000);
    nowMs = 1_000;
    stdout.text = "";
    log.debug("tls.handshake_failed", { leftOut: 5 });
    expect(JSON.parse(stdout.text)).toMatchObject({ leftOut: 2_005 });
  });

  it("bounds warnings and errors of one kind, says how many it left out, and bounds nothing else", () => {
    let nowMs = 0;
    const stdout = capture();
    const log = createLogger({ level: "info", format: "json", stdout, stderr: capture(), nowMs: () => nowMs });
    const lines = (): { message: string; leftOut?: number }[] =>
      stdout.text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { message: string; leftOut?: number });
    for (let i = 0; i < 1_000; i++) log.error("http.request_failed", { i });
    expect(lines()).toHaveLength(60);
    log.error("grpc.call_failed");
    for (let i = 0; i < 100; i++) log.info("counters.reset", { i });
    expect(lines()).toHaveLength(161);
    nowMs = 60_000;
    log.error("http.request_failed");
    log.error("http.request_failed");
    expect(
      lines()
        .slice(161)
        .map(({ leftOut }) => leftOut),
    ).toEqual([940, undefined]);
  });
});
