import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { CheckRequest, Decision } from "@sluice/protocol";
import { createLogger, type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const policies = "policies: [{ id: calls, limits: [{ by: [user], windows: 200/h }], on_failure: open }]\n";
const grpcHeaders = ["content-type: application/grpc", "te: trailers"];

let folder: string;
let daemon: Daemon;
let url: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-http2-"));
  const config = path.join(folder, "policies.yaml");
  writeFileSync(config, policies);
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "0", config });
  if (reading.kind !== "settings") throw new Error(JSON.stringify(reading));
  const { stdout, stderr } = process;
  const log = createLogger({ level: "silent", format: "text", stdout, stderr });
  daemon = await startDaemon({ settings: reading.settings, log });
  url = daemon.addresses.grpc[0]!.replace("grpc://", "http://");
});

afterAll(async () => {
  await daemon?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A file with a message as gRPC frames it. */
function bodyFile(user: string): string {
  const message = CheckRequest.encode(CheckRequest.fromPartial({ dimensions: { user } })).finish();
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  const file = path.join(folder, `${user}.bin`);
  writeFileSync(file, Buffer.concat([head, message]));
  return file;
}

/** The output of curl, and the headers and trailers. */
async function askByCurl(method: string, body?: string): Promise<{ readonly head: string; readonly body: Buffer }> {
  const head = path.join(folder, "head.txt");
  const headers = grpcHeaders.flatMap((header) => ["--header", header]);
  const sent = body === undefined ? ["--request", "POST"] : ["--data-binary", `@${body}`];
  const args = ["--silent", "--http2-prior-knowledge", "--dump-header", head, ...headers, ...sent];
  const { stdout } = await run("curl", [...args, `${url}${method}`], { encoding: "buffer" });
  const { stdout: dumped } = await run("cat", [head]);
  return { head: dumped, body: stdout };
}

describe("curl --http2-prior-knowledge", () => {
  it("gets a decision, with a status of 0 in the trailers", async () => {
    const { head, body } = await askByCurl("/sluice.v1.RateLimiter/Check", bodyFile("curl"));
    expect(head).toMatch(/^HTTP\/2 200 \r\n[\s\S]*^grpc-status: 0\r$/m);
    const decision = Decision.decode(body.subarray(5));
    expect(decision).toMatchObject({ allowed: true, policy: "calls", remaining: 199 });
  });

  it("gets an error for an unknown method, and for bytes that are not a message", async () => {
    // Without a body: the answer would come before the body has arrived, which curl takes for no answer.
    expect((await askByCurl("/sluice.v1.RateLimiter/Guess")).head).toMatch(/^grpc-status: 12\r$/m);
    const nonsense = path.join(folder, "nonsense.bin");
    writeFileSync(nonsense, Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff]));
    expect((await askByCurl("/sluice.v1.RateLimiter/Check", nonsense)).head).toMatch(/^grpc-status: 3\r$/m);
  });
});

describe("h2load", () => {
  it("is answered every time, over many streams, and charged exactly", async () => {
    const headers = grpcHeaders.map((header) => `--header=${header}`);
    const args = ["--requests=150", "--clients=3", "--max-concurrent-streams=10", `--data=${bodyFile("h2load")}`];
    const { stdout } = await run("h2load", [...args, ...headers, `${url}/sluice.v1.RateLimiter/Check`]);
    expect(stdout).toMatch(/150 total, 150 started, 150 done, 150 succeeded, 0 failed, 0 errored, 0 timeout/);
    const { remaining } = await daemon.limiter.peek({ dimensions: { user: "h2load" } });
    expect(remaining).toBe(50);
  });
});
