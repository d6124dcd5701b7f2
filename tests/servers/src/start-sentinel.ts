import { writeFile } from "node:fs/promises";
import path from "node:path";
import { isReplicating, readRole } from "./replication.ts";
import { startProcess } from "./server-process.ts";
import { closeAll, startAll } from "./start-all.ts";
import { basicArgs, startServer } from "./start-server.ts";
import type { Flavor, TestServer } from "./test-server.ts";
import { waitUntil } from "./wait-until.ts";

export interface SentinelOptions {
  readonly flavor: Flavor;
  readonly replicas?: number;
  readonly sentinels?: number;
  /** How long a primary is silent before a sentinel holds it to be down; 700 at least. */
  readonly downAfterMs?: number;
  /** More of the servers' command line. */
  readonly args?: readonly string[];
}

/** A primary with its replicas, and sentinels that fail over when two of them find the primary down. */
export interface TestSentinel {
  readonly flavor: Flavor;
  /** The name by which sentinels are asked for the primary. */
  readonly masterName: string;
  /** They ask often, so that tests are quick; one that is restarted asks at its usual pace. */
  readonly sentinels: readonly TestServer[];
  /** The first is the primary at the start. */
  readonly servers: readonly TestServer[];
  /** The primary, in the eyes of the sentinels. */
  primary(): Promise<TestServer>;
  /** Resolves when all sentinels that run agree on another primary, and it says itself that it is one. */
  waitForNewPrimary(old: TestServer, withinMs?: number): Promise<TestServer>;
  close(): Promise<void>;
}

const masterName = "sluice-test";
const settleWithinMs = 15_000;
const failoverTimeoutMs = 1_500;
/**
 * Sentinels ask one another and the servers every second, or every ten; for tests that is ages.
 *
 * The period of pings is bounded from both sides. Sentinels begin to wait for a new primary's answer one period before they
 * send the first ping, so `downAfterMs` has to be twice as long, or they find it down. And they fail over only to a replica
 * that they saw in the last five periods, and once the primary is down, they ask replicas every second.
 *
 * A sentinel that was suspended distrusts itself for the tilt period.
 */
const periodsMs = {
  "ping-period": 300,
  "info-period": 200,
  "publish-period": 200,
  "ask-period": 200,
  "tilt-period": 1_000,
};

export async function startSentinel(options: SentinelOptions): Promise<TestSentinel> {
  const { flavor, replicas = 1, sentinels: sentinelCount = 3, downAfterMs = 1_000, args = [] } = options;
  const servers: TestServer[] = [];
  const sentinels: TestServer[] = [];
  const close = (): Promise<void> => closeAll([...sentinels, ...servers]);
  try {
    // Replicas are there at once, rather than after five seconds in which more could join.
    const serverArgs = ["--repl-diskless-sync-delay", "0", ...args];
    const primary = await startServer({ flavor, args: serverArgs });
    servers.push(primary);
    const replicaArgs = [...serverArgs, "--replicaof", primary.host, String(primary.port)];
    servers.push(...(await startAll(replicas, () => startServer({ flavor, args: replicaArgs }))));
    await Promise.all(servers.slice(1).map(waitUntilReplicating));

    const configuration = [
      `sentinel monitor ${masterName} ${primary.host} ${primary.port} ${Math.min(2, sentinelCount)}`,
      `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
      `sentinel failover-timeout ${masterName} ${failoverTimeoutMs}`,
      `sentinel parallel-syncs ${masterName} 1`,
    ];
    sentinels.push(...(await startAll(sentinelCount, () => startOneSentinel(flavor, configuration))));
    await Promise.all(sentinels.map((sentinel) => waitUntilAware(sentinel, replicas, sentinelCount - 1)));
  } catch (error) {
    await close();
    throw error;
  }

  const primaryIn = async (sentinel: TestServer): Promise<TestServer | undefined> => {
    const address = await sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName);
    const port = Array.isArray(address) ? Number(address[1]) : undefined;
    return servers.find((server) => server.port === port);
  };
  const agreedPrimary = async (): Promise<TestServer | undefined> => {
    const running = sentinels.filter((sentinel) => sentinel.state === "running");
    const [first, ...others] = await Promise.all(running.map(primaryIn));
    return others.every((other) => other === first) ? first : undefined;
  };
  return {
    flavor,
    masterName,
    sentinels,
    servers,
    primary: () => waitUntil("the sentinels agree on a primary", settleWithinMs, agreedPrimary),
    waitForNewPrimary: (old, withinMs = settleWithinMs) =>
      waitUntil(`another primary than the one on port ${old.port}`, withinMs, async () => {
        const primary = await agreedPrimary();
        if (primary === undefined || primary === old || primary.state !== "running") return undefined;
        return (await readRole(primary)) === "master" ? primary : undefined;
      }),
    close,
  };
}

async function startOneSentinel(flavor: Flavor, configuration: readonly string[]): Promise<TestServer> {
  const sentinel = await startProcess({
    flavor,
    tls: false,
    argsFor: async (place) => {
      // A sentinel writes its state into its file, and reads it again after a restart.
      const file = path.join(place.folder, "sentinel.conf");
      await writeFile(file, `${configuration.join("\n")}\n`);
      return [file, "--sentinel", ...basicArgs(place)];
    },
  });
  await sentinel.command("SENTINEL", "DEBUG", ...Object.entries(periodsMs).flat());
  return sentinel;
}

async function waitUntilReplicating(replica: TestServer): Promise<void> {
  await waitUntil(`the replica on port ${replica.port} follows its primary`, settleWithinMs, async () =>
    (await isReplicating(replica)) ? true : undefined,
  );
}

async function waitUntilAware(sentinel: TestServer, replicas: number, otherSentinels: number): Promise<void> {
  await waitUntil("a sentinel knows the replicas and the other sentinels", settleWithinMs, async () => {
    const reply = (await sentinel.command("SENTINEL", "MASTER", masterName)) as readonly string[];
    const findField = (field: string): string | undefined => reply[reply.indexOf(field) + 1];
    const aware =
      findField("flags") === "master" &&
      Number(findField("num-slaves")) === replicas &&
      Number(findField("num-other-sentinels")) === otherSentinels;
    return aware ? true : undefined;
  });
}
