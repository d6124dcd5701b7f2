// npm run bench -- latency [--json] [--quick] [--write]: how long a caller waits for a decision over each protocol, at half of the rate that
// the server can answer: with counters in memory, on a Valkey, and on a Valkey with leases; and the price of a deadline of 3 ms.
// --write puts the table into docs/benchmarks.md.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "@sluice/test-servers";
import {
  type LatencyResult,
  type MeasuredLatency,
  type Protocol,
  renderLatency,
  type Setup,
} from "./latency/render-latency.ts";
import { closedLoop, type Latencies, openLoop, percentile } from "./measure/latencies.ts";
import { writeSection } from "./measure/write-section.ts";
import { writeChecks } from "./service/checks-on-disk.ts";
import { countDegraded, degradedShare } from "./service/count-degraded.ts";
import { latenciesByH2load, loadByH2load, loadByHttp1 } from "./service/load-tools.ts";
import { createRespCaller } from "./service/resp-caller.ts";
import { type Served, startServed } from "./service/start-served.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
  },
});
/** A quick run shows that everything works; its numbers mean little. */
const size = args.quick ? { requests: 200, seconds: 0.2 } : { requests: 60_000, seconds: 10 };

const root = path.join(import.meta.dirname, "..");
// Users run compiled code.
execFileSync(path.join(root, "node_modules", ".bin", "tsc"), ["-b", "packages/server"], {
  cwd: root,
  stdio: "inherit",
});

const valkey = await startServer({ flavor: "valkey" });
const files = writeChecks();

const protocols: readonly Protocol[] = ["grpc", "http", "resp"];

/** What decides, and the arguments of the server. */
const setups: Readonly<Record<Setup, readonly string[]>> = {
  memory: [files.policies()],
  valkey: [files.policies(), valkey.url],
  valkey_leases: [files.policies(), valkey.url, "on"],
  valkey_deadline_3ms: [files.policies("deadline: 3ms"), valkey.url],
};

const rounded = (value: number, digits = 3): number => Number(value.toFixed(digits));

/** Finds the highest rate, and how long answers take at a rate. */
interface Load {
  most(): Promise<number>;
  paced(perSecond: number): Promise<Latencies>;
  close(): void;
}

function loadByTool(server: Served, protocol: "grpc" | "http"): Load {
  const path = { grpc: "/sluice.v1.RateLimiter/Check", http: "/v1/check" }[protocol];
  const url = `http://127.0.0.1:${server.ports[protocol]}${path}`;
  const { requests, seconds } = size;
  const bodyFile = files[protocol];
  const connections = protocol === "grpc" ? 8 : 32;
  const logFile = `${bodyFile}.log`;
  return {
    most: async () => {
      const load =
        protocol === "grpc"
          ? loadByH2load(url, bodyFile, { requests, connections, streams: 64 })
          : loadByHttp1(url, bodyFile, { requests, connections });
      return (await load).perSecond;
    },
    paced: (perSecond) => latenciesByH2load({ url, bodyFile, protocol, connections, perSecond, seconds, logFile }),
    close() {},
  };
}

/** Commands from this process, because redis-benchmark knows no rates. */
async function loadByResp({ ports }: Served): Promise<Load> {
  const caller = await createRespCaller(ports.resp!);
  const ask = (): Promise<void> => caller.send("SLUICE.CHECK", "user=user-7", "endpoint=/v1/orders");
  const forMs = size.seconds * 1_000;
  return {
    most: async () => (await closedLoop(ask, { from: 0, inFlight: 64, forMs: forMs / 5 })).length / (forMs / 5_000),
    paced: (perSecond) => openLoop(ask, { from: 0, perSecond, forMs }),
    close: () => caller.close(),
  };
}

/** At half of the highest rate, unless a rate is given. */
async function measure(server: Served, protocol: Protocol, atPerSecond?: number): Promise<MeasuredLatency> {
  const load = protocol === "resp" ? await loadByResp(server) : loadByTool(server, protocol);
  // The first one warms up.
  await load.most();
  const perSecond = atPerSecond ?? (await load.most()) / 2;
  const before = await countDegraded(server);
  const latencies = await load.paced(perSecond);
  load.close();
  return {
    half_load_per_s: Math.round(perSecond),
    p50_ms: rounded(percentile(latencies, 0.5)),
    p99_ms: rounded(percentile(latencies, 0.99)),
    p999_ms: rounded(percentile(latencies, 0.999)),
    degraded_share: rounded(degradedShare(await countDegraded(server), before), 5),
  };
}

const measuredBySetup: Partial<Record<Setup, Partial<Record<Protocol, MeasuredLatency>>>> = {};
console.log(
  "ms that a caller waits at half of the highest rate; the share decided without counters, because they were late",
);
try {
  for (const setup of Object.keys(setups) as Setup[]) {
    const byProtocol: Partial<Record<Protocol, MeasuredLatency>> = {};
    // A quick run, whose numbers mean little, asks one server by every protocol.
    const shared = args.quick ? await startServed("sluice", ...setups[setup]) : undefined;
    for (const protocol of protocols) {
      const server = shared ?? (await startServed("sluice", ...setups[setup]));
      try {
        // A server that decides without counters is faster, so the deadline's price is measured at the rate without it.
        const rate = setup === "valkey_deadline_3ms" ? measuredBySetup.valkey?.[protocol]?.half_load_per_s : undefined;
        const measured = await measure(server, protocol, rate);
        byProtocol[protocol] = measured;
        console.log(
          `  ${setup.padEnd(20)} ${protocol.padEnd(5)} ${`${measured.half_load_per_s}`.padStart(8)} /s   median ${measured.p50_ms}, ` +
            `99 % ${measured.p99_ms}, 99.9 % ${measured.p999_ms}; ${(measured.degraded_share * 100).toFixed(3)} %`,
        );
      } finally {
        if (server !== shared) server.stop();
      }
    }
    shared?.stop();
    measuredBySetup[setup] = byProtocol;
  }
} finally {
  await valkey.close();
  files.remove();
}
if (args.write && !args.quick) writeSection("latency", renderLatency(measuredBySetup as LatencyResult));
if (args.json) console.log(JSON.stringify({ suite: "latency", ...measuredBySetup }));
