/** A server in its own process, so that its CPU time and memory can be measured apart from those of its callers. */
import { createLimiter } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { startDaemon } from "../../boot/daemon.ts";
import { parseSettings } from "../../settings/parse-settings.ts";

/** What it is to serve: its first message. */
export interface ServerStart {
  /** Settings. */
  readonly variables: Readonly<Record<string, string>>;
  /** The text of the policies. */
  readonly policies: string;
}

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

const silent = { debug() {}, info() {}, warn() {}, error() {} };

async function serve(variables: ServerStart["variables"]): Promise<ServerPorts> {
  const reading = parseSettings(variables);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const { addresses } = await startDaemon({ settings: reading.settings, log: silent });
  const port = ([url = ""]: readonly string[]): number => Number(url.slice(url.lastIndexOf(":") + 1));
  return { http: port(addresses.http), grpc: port(addresses.grpc), resp: port(addresses.resp) };
}

let limiter: ReturnType<typeof createLimiter> | undefined;
const subjects = 10_000;

function decide(checks: number, policies: string): void {
  limiter ??= createLimiter({ policies: parsePolicyText(policies).policySet });
  for (let i = 0; i < checks; i++)
    limiter.checkSync({ dimensions: { user: `user-${i % subjects}`, endpoint: "/one" } });
}

process.once("message", async ({ variables, policies }: ServerStart) => {
  process.on("message", ({ decide: checks }: ServerRequest) => {
    decide(checks, policies);
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuUs: user + system, rssBytes: process.memoryUsage().rss } satisfies ServerUsage);
  });
  process.send?.(await serve(variables));
});
process.on("disconnect", () => process.exit());
