import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type RemoteLimiter } from "@sluice/client";
import { waitUntil } from "@sluice/test-servers";
import { type Sluice, startSluice } from "../restart/start-sluice.ts";

/** Servers as an operator runs them, with default settings, that share policies and counters. */
export interface OpenServers {
  readonly servers: readonly Sluice[];
  /** One for each server. They decide nothing themselves, and wait for an answer however long it takes. */
  readonly limiters: readonly RemoteLimiter[];
  readonly folder: string;
  close(): Promise<void>;
}

export interface ServerOptions {
  readonly policies: object;
  readonly redis?: string;
  /** Absent: the default of servers. */
  readonly deadline?: string;
  readonly env?: (index: number, folder: string) => Readonly<Record<string, string>>;
}

/** `startSluice` is patient with counters; these are as patient as servers are by default. */
export const defaultDeadline = "25ms";
const readyWithinMs = 60_000;
const clientDeadlineMs = 60_000;

export async function openServers(
  count: number,
  { policies, redis, deadline = defaultDeadline, env }: ServerOptions,
): Promise<OpenServers> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-gameday-"));
  const servers: Sluice[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(limiters.map((one) => one.close()));
    await Promise.all(servers.map((one) => one.kill()));
    await rm(folder, { recursive: true, force: true });
  };
  const limiters: RemoteLimiter[] = [];
  try {
    const config = join(folder, "policies.json");
    await writeFile(config, JSON.stringify(policies));
    const startOne = async (_: unknown, i: number): Promise<void> => {
      const settings = {
        SLUICE_DEADLINE: deadline,
        ...(redis === undefined ? {} : { SLUICE_REDIS_URL: redis }),
        ...env?.(i, folder),
      };
      servers[i] = await startSluice(settings, "--config", config);
    };
    await Promise.all(Array.from({ length: count }, startOne));
    for (const server of servers) {
      await waitUntil("a server is ready", readyWithinMs, async () => (await server.isReady()) || undefined);
      limiters.push(connectTo(server));
    }
    return { servers, limiters, folder, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Answers that do not come are failures of the day, so they are not made up. */
export function connectTo({ grpc }: Sluice): RemoteLimiter {
  return connect(`grpc://${grpc}`, { leases: false, deadlineMs: clientDeadlineMs, whenUnavailable: "closed" });
}
