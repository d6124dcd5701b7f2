// npm run bench -- attacks [--json] [--quick]: what attacks do to a server and to its other clients. Each runs against a fresh
// server; the table shows the peak memory of its process, and the longest wait of another client's GET /livez.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, get } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type BenchNode, startNode } from "./propagation/start-node.ts";

const { values: args } = parseArgs({
  options: { json: { type: "boolean", default: false }, quick: { type: "boolean", default: false } },
});

/** The amount of load. A quick run shows that everything works; its numbers mean little. */
const size = args.quick
  ? { forMs: 1_000, connections: 2, calls: 4, requests: 200, aliases: 100, errorBytes: 50_000 }
  : { forMs: 10_000, connections: 20, calls: 100, requests: 50_000, aliases: 20_000, errorBytes: 5_000_000 };

interface Attack {
  readonly name: string;
  /** Additional settings of the server, and a cleanup to run after it. */
  prepare?(): Promise<{ readonly env: Readonly<Record<string, string>>; end(): void }>;
  /** Sends a bounded amount. Resolves when all of it is sent or refused, or `signal` aborts. */
  play(node: BenchNode, token: string, signal: AbortSignal): Promise<void>;
}

const nothing: Attack = { name: "no attack", play: (_node, _token, signal) => untilAborted(signal) };

/** gRPC messages of 1 MiB whose last byte is never sent. */
const halfSent: Attack = {
  name: "half-sent gRPC messages",
  async play({ grpc }, _token, signal) {
    const message = Buffer.alloc(5 + 1024 * 1024);
    message.writeUInt32BE(1024 * 1024, 1);
    const half = message.subarray(0, -1);
    const sessions = Array.from({ length: size.connections }, () => {
      const session = connectHttp2(grpc!.replace("grpc://", "http://"), { maxSessionMemory: 4_096 });
      session.on("error", ignore);
      for (let i = 0; i < size.calls; i++) {
        const head = { ":method": "POST", ":path": "/sluice.v1.RateLimiter/CheckBatch", te: "trailers" };
        const call = session.request({ ...head, "content-type": "application/grpc" });
        call.on("error", ignore).resume().write(half);
      }
      return session;
    });
    await untilAborted(signal);
    for (const session of sessions) session.destroy();
  },
};

/** `GET /metrics` again and again on each connection, without reading an answer. */
const unread: Attack = {
  name: "unread pipelined HTTP",
  async play({ http }, _token, signal) {
    const { hostname, port } = new URL(http);
    const requests = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(size.requests);
    const sockets = Array.from({ length: size.connections }, (): Socket => {
      const socket = connect(Number(port), hostname).on("error", ignore).pause();
      socket.write(requests);
      return socket;
    });
    await untilAborted(signal);
    for (const socket of sockets) socket.destroy();
  },
};

/** A configuration whose merge keys name one map again and again. */
const mergeKeys: Attack = {
  name: "YAML merge-key bomb",
  async play({ admin }, token, signal) {
    const map = Array.from({ length: 200 }, (_, i) => `k${i}: ${i}`).join(", ");
    const text = `base: &m { ${map} }\npolicies:\n${"  - <<: *m\n".repeat(size.aliases)}`;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/yaml", "if-match": "*" };
    while (!signal.aborted) {
      const response = await fetch(`${admin}/api/v1/import`, { method: "POST", headers, body: text });
      await response.text();
      if (response.status < 400) throw new Error(`a bomb was accepted: ${response.status}`);
    }
  },
};

/** A Redis that answers everything with an error of megabytes, which the log must not repeat. */
const longErrors: Attack = {
  name: "log redaction of errors",
  async prepare() {
    const answer = `-ERR ${"password=hunter2 token ".repeat(Math.ceil(size.errorBytes / 23))}\r\n`;
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", ignore).on("data", () => {
        // Adds no answer while earlier ones are unsent.
        if (socket.writableLength < answer.length) socket.write(answer);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const end = (): void => {
      server.close();
      for (const socket of sockets) socket.destroy();
    };
    return { env: { SLUICE_REDIS_URL: `redis://127.0.0.1:${(server.address() as AddressInfo).port}` }, end };
  },
  async play({ http }, _token, signal) {
    while (!signal.aborted) {
      const body = JSON.stringify({ dimensions: { user: "ada" } });
      const headers = { "content-type": "application/json" };
      await (await fetch(`${http}/v1/check`, { method: "POST", headers, body })).text();
      await pause(20);
    }
  },
};

function ignore(): void {}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Asks repeatedly on one connection. Resolves with the longest wait, in milliseconds. */
async function watchLivez(http: string, signal: AbortSignal): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let longestMs = 0;
  while (!signal.aborted) {
    const sinceMs = performance.now();
    await new Promise<void>((resolve, reject) => {
      get(`${http}/livez`, { agent }, (response) => {
        response.resume().once("end", () => resolve());
      }).once("error", reject);
    });
    longestMs = Math.max(longestMs, performance.now() - sinceMs);
    await pause(10);
  }
  agent.destroy();
  return longestMs;
}

/** A process's memory in MiB, as Linux reports it: its peak, or its current size. */
function readMemoryMib(pid: number, line: "VmHWM" | "VmRSS"): number {
  const [, kibibytes = "NaN"] =
    new RegExp(`^${line}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) / 1024;
}

interface Measurements {
  readonly rss_before_mib: number;
  readonly peak_rss_mib: number;
  readonly livez_max_ms: number;
}

async function measure(attack: Attack): Promise<Measurements> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-attacks-"));
  const tokenFile = path.join(folder, "token");
  const prepared = await attack.prepare?.();
  const store = { SLUICE_STORE_URL: `sqlite:${path.join(folder, "policies.db")}`, SLUICE_ADMIN_TOKEN_FILE: tokenFile };
  const node = await startNode({ SLUICE_GRPC_PORT: "0", ...store, ...prepared?.env });
  try {
    const token = readFileSync(tokenFile, "utf8").trim();
    await pause(500);
    const beforeMib = readMemoryMib(node.pid, "VmRSS");
    const watched = new AbortController();
    const attacked = new AbortController();
    const waited = watchLivez(node.http, watched.signal);
    const played = attack.play(node, token, attacked.signal);
    await Promise.race([pause(size.forMs), Promise.all([played, waited])]);
    attacked.abort();
    await played;
    watched.abort();
    const measurements = [beforeMib, readMemoryMib(node.pid, "VmHWM"), await waited].map((one) =>
      Number(one.toFixed(1)),
    );
    const [rss_before_mib = 0, peak_rss_mib = 0, livez_max_ms = 0] = measurements;
    return { rss_before_mib, peak_rss_mib, livez_max_ms };
  } finally {
    await node.stop();
    prepared?.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

const result: Record<string, unknown> = { suite: "attacks", for_ms: size.forMs };
console.log(`each attack for ${size.forMs / 1_000} s on a fresh server`);
console.log(
  `  ${"".padEnd(26)}${["RSS before", "peak RSS", "longest /livez"].map((one) => one.padStart(16)).join("")}`,
);
for (const attack of [nothing, halfSent, unread, mergeKeys, longErrors]) {
  const measurements = await measure(attack);
  result[attack.name.toLowerCase().replace(/\W+/g, "_")] = measurements;
  const { rss_before_mib, peak_rss_mib, livez_max_ms } = measurements;
  const cells = [`${rss_before_mib} MiB`, `${peak_rss_mib} MiB`, `${livez_max_ms} ms`].map((one) => one.padStart(16));
  console.log(`  ${attack.name.padEnd(26)}${cells.join("")}`);
}
if (args.json) console.log(JSON.stringify(result));
