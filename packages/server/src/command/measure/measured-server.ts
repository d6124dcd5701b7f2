/** A server in its own process, so that its CPU time and memory can be measured apart from those of its callers. */
import { createLimiter } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { startDaemon } from "../../boot/daemon.ts";
import { parseSettings } from "../../settings/parse-settings.ts";

export interface ServerPorts {
  readonly http: number;
  readonly grpc: number;
  readonly resp: number;
}

/** What it has used since it started. */
export interface ServerUsage {
  readonly cpuUs: number;
  readonly rssBytes: number;
}

export interface ServerRequest {
  /** Checks to decide in the process itself, before it answers. */
  readonly decide: number;
}

/** `["…=…"]`: the settings, as variables. The policies' text comes last. */
const [variables = "{}", policies = ""] = process.argv.slice(2);
const silent = { debug() {}, info() {}, warn() {}, error() {} };

async function serve(): Promise<ServerPorts> {
  const reading = parseSettings(JSON.parse(variables));
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const { addresses } = await startDaemon({ settings: reading.settings, log: silent });
  const port = ([url = ""]: readonly string[]): number => Number(url.slice(url.lastIndexOf(":") + 1));
  return { http: port(addresses.http), grpc: port(addresses.grpc), resp: port(addresses.resp) };
}

let limiter: ReturnType<typeof createLimiter> | undefined;
const subjects = 10_000;

function decide(checks: number): void {
  limiter ??= createLimiter({ policies: parsePolicyText(policies).policySet });
  for (let i = 0; i < checks; i++)
    limiter.checkSync({ dimensions: { user: `user-${i % subjects}`, endpoint: "/one" } });
}

process.on("message", ({ decide: checks }: ServerRequest) => {
  decide(checks);
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuUs: user + system, rssBytes: process.memoryUsage().rss } satisfies ServerUsage);
});
process.on("disconnect", () => process.exit());
process.send?.(await serve());
