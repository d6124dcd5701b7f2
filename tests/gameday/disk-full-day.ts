import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres, startServer, type TestPostgres, waitUntil } from "@sluice/test-servers";
import {
  createFleet,
  createPolicyDocument,
  decide,
  type Fleet,
  steer,
  steerWell,
} from "../control-plane/start-fleet.ts";
import { createDraw } from "../leases/play-leases.ts";
import { main, type Sluice, startCommand } from "../restart/start-sluice.ts";
import { type DayNotes, type GameDay, gameDay } from "./game-day.ts";
import { connectTo } from "./open-servers.ts";
import { PacedTraffic } from "./paced-traffic.ts";

const patienceMs = 90_000;
const sqliteMiB = 6;
/** PostgreSQL keeps 16 MiB of its log at least, and as much of tables before there is any. */
const postgresMiB = 120;
/** So long a description that a few of them need space which is not there. */
const filler = "x".repeat(900);

type Key = "decided" | "refused" | "nothingHalf" | "again" | "kept" | "postgres";

const day: GameDay<Key> = {
  name: "disk-full",
  title: "The disk under the policy store is full",
  done: ({ form }) => [
    `The store of a server is an SQLite file on a file system of ${sqliteMiB} MiB, which is filled to the last byte under traffic.`,
    "Changes are made until one is refused, then the space is freed, and the same change is made again.",
    "At last the server is killed and started again on the same file.",
    ...(form === "full"
      ? [
          `The same with two servers on a PostgreSQL whose file system has ${postgresMiB} MiB: it panics, and recovers by itself.`,
        ]
      : []),
  ],
  promises: {
    decided: { text: "every check is decided, by the last policies that were stored" },
    refused: {
      text: "a change that cannot be stored is refused with `policy_store_unavailable`, and nothing else fails",
    },
    nothingHalf: { text: "nothing of a refused change is in force or in the history" },
    again: { text: "once there is space, the same change succeeds without a restart" },
    kept: { text: "after a crash the file is whole, and the last change is in force" },
    postgres: { text: "the same holds for two servers on PostgreSQL" },
  },
  async play(notes, options) {
    await onSqlite(notes);
    if (options.form === "full") await onPostgres(notes);
    else notes.judge("postgres", true, "left to the full form");
  },
};

/** A small file system that only the server sees, and that is gone with it. */
async function startOnSmallDisk(env: Readonly<Record<string, string>>, disk: string): Promise<Sluice> {
  const own = process.getuid?.() === 0 ? ["unshare", "--mount"] : ["unshare", "--user", "--map-root-user", "--mount"];
  const script = `mount -t tmpfs -o size=${sqliteMiB}m none "$0" && if [ -e "$0.saved" ]; then cp "$0.saved" "$0/store.db"; fi && exec "$@"`;
  const serve = [process.execPath, "-C", "source", main, "serve", "--log-format", "json"];
  return startCommand(env, [...own, "sh", "-c", script, disk, ...serve]);
}

async function onSqlite(notes: DayNotes<Key>): Promise<void> {
  const valkey = notes.opened(await startServer({ flavor: "valkey" }));
  const fleet = notes.opened(
    await createFleet({ SLUICE_REDIS_URL: valkey.url }, async (env) => {
      const disk = join(fleet.folder, "disk");
      await mkdir(disk, { recursive: true });
      return startOnSmallDisk({ ...env, SLUICE_STORE_URL: `sqlite:${join(disk, "store.db")}` }, disk);
    }),
  );
  const server = await fleet.start("one");
  const disk = join(`/proc/${server.pid}/root`, fleet.folder, "disk");
  const drill = await playFull(
    fleet,
    [server],
    () => fillDisk(disk),
    async () => rmSync(join(disk, "filler")),
  );
  notes.judge(
    "decided",
    drill.failed === 0 && drill.wrong === 0,
    `${drill.failed} of ${drill.checks} failed, ${drill.wrong} were decided otherwise`,
  );
  notes.judge(
    "refused",
    drill.refused.length > 0 && drill.otherErrors.length === 0,
    [...drill.refused.slice(0, 1), ...drill.otherErrors].join("; ") || "no change was refused",
  );
  notes.judge(
    "nothingHalf",
    drill.half.length === 0,
    drill.half.join("; ") || `version ${drill.version} before and after`,
  );
  notes.judge("again", drill.again, drill.again ? "it did" : "it did not");
  notes.fact(`${drill.accepted} changes were still stored on the full disk, and ${drill.refused.length} refused`);
  // The file system ends with the server: what a crash leaves is copied while it still runs.
  execFileSync("sh", [
    "-c",
    `kill -STOP ${server.pid}; cat "${disk}/store.db" > "${fleet.folder}/disk.saved"; cat "${disk}/store.db-wal" > "${fleet.folder}/disk.saved-wal"; true`,
  ]);
  await server.kill();
  execFileSync("sh", ["-c", `cd "${fleet.folder}" && cp disk.saved whole.db && cp disk.saved-wal whole.db-wal`]);
  const { DatabaseSync } = await import("node:sqlite");
  const file = new DatabaseSync(join(fleet.folder, "whole.db"));
  const check = JSON.stringify(file.prepare("pragma integrity_check").all());
  file.exec("pragma wal_checkpoint(truncate)");
  file.close();
  execFileSync("cp", [join(fleet.folder, "whole.db"), join(fleet.folder, "disk.saved")]);
  const restarted = await fleet.start("one");
  const { limit } = (await decide(restarted)) as { limit?: number };
  notes.judge(
    "kept",
    check.includes('"ok"') && limit === drill.lastLimit,
    `integrity check ${check.includes('"ok"') ? "ok" : check}; limit ${limit}, last set to ${drill.lastLimit}`,
  );
}

interface Drill {
  readonly checks: number;
  readonly failed: number;
  /** Not by the policies that were in force. */
  readonly wrong: number;
  /** Why changes were refused, by the code that is promised. */
  readonly refused: readonly string[];
  readonly otherErrors: readonly string[];
  readonly accepted: number;
  readonly half: readonly string[];
  readonly version: number;
  readonly again: boolean;
  readonly lastLimit: number;
}

const limits = { first: 1_000_000, refused: 3_000_000, again: 4_000_000 };

async function playFull(
  fleet: Fleet,
  servers: readonly Sluice[],
  fill: () => void | Promise<void>,
  free: () => Promise<void>,
): Promise<Drill> {
  const [first] = servers as [Sluice];
  const import_ = (limit: number): Promise<unknown> =>
    steerWell(first, fleet, "POST", "/import", JSON.stringify({ policies: [createPolicyDocument("p", limit)] }));
  await import_(limits.first);
  const limiters = servers.map(connectTo);
  const traffic = new PacedTraffic(limiters, (user) => ({ dimensions: { user, endpoint: "/p" } }), createDraw(5));
  const over = new AbortController();
  const running = traffic.run(() => [["u", 100]], Number.POSITIVE_INFINITY, over.signal);
  const refused: string[] = [];
  const otherErrors: string[] = [];
  const half: string[] = [];
  let accepted = 0;
  let lastLimit = limits.first;
  let again = false;
  let version = 0;
  try {
    await fill();
    for (let i = 0; i < 60 && refused.length < 3; i++) {
      const limit = limits.refused + i;
      const policies = Array.from({ length: 40 }, (_, n) => ({
        ...createPolicyDocument(n === 0 ? "p" : `filler-${n}`, limit),
        description: filler,
      }));
      const { status, body } = await steer(first, fleet, "POST", "/import", JSON.stringify({ policies }));
      if (status < 300) {
        accepted += 1;
        lastLimit = limit;
      } else if (status === 503 && body.code === "policy_store_unavailable")
        refused.push(`${status} ${body.code}: ${body.message ?? body.detail}`);
      else otherErrors.push(`${status} ${JSON.stringify(body)}`);
    }
    for (const server of servers) {
      const { limit } = (await decide(server)) as { limit?: number };
      if (limit !== lastLimit) half.push(`a limit of ${limit} is in force instead of ${lastLimit}`);
    }
    await free();
    version = await waitUntil("the history can be read", patienceMs, () => readVersion(first, fleet));
    // What was stored before, and the import of the first.
    if (version !== accepted + 1) half.push(`${version} versions after ${accepted + 1} changes`);
    again = await waitUntil("the change succeeds", patienceMs, async () => {
      const { status } = await steer(
        first,
        fleet,
        "POST",
        "/import",
        JSON.stringify({ policies: [createPolicyDocument("p", limits.again)] }),
      );
      return status < 300 || undefined;
    }).catch(() => false);
    if (again) lastLimit = limits.again;
    for (const server of servers) {
      await waitUntil(
        "the change is in force",
        patienceMs,
        async () => (await decide(server)).limit === lastLimit || undefined,
      );
    }
  } finally {
    over.abort();
    await running;
    await Promise.all(limiters.map((one) => one.close()));
  }
  const { sent } = traffic;
  return {
    checks: sent.length,
    failed: sent.filter(({ error }) => error !== undefined).length,
    wrong: sent.filter(({ allowed, degraded }) => !allowed || degraded !== undefined).length,
    ...{ refused, otherErrors, accepted, half, version, again, lastLimit },
  };
}

async function readVersion(server: Sluice, fleet: Fleet): Promise<number | undefined> {
  const { status, body } = await steer(server, fleet, "GET", "/policies/p/versions");
  const [latest] = (body.items ?? []) as readonly { readonly version: number }[];
  return status === 200 ? latest?.version : undefined;
}

/** Until not another byte fits. */
function fillDisk(disk: string): void {
  const file = openSync(join(disk, "filler"), "w");
  try {
    for (let size = 2 ** 20; size > 0; ) {
      try {
        writeSync(file, Buffer.alloc(size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
        size = Math.floor(size / 16);
      }
    }
  } finally {
    closeSync(file);
  }
}

async function onPostgres(notes: DayNotes<Key>): Promise<void> {
  const disk = mkdtempSync(join(tmpdir(), "sluice-small-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${postgresMiB}m`, "none", disk]);
  notes.opened({ close: async () => execFileSync("sh", ["-c", `umount "${disk}" && rmdir "${disk}"`]) });
  const postgres: TestPostgres = notes.opened(await startPostgres({ parent: disk }));
  const valkey = notes.opened(await startServer({ flavor: "valkey" }));
  const fleet = notes.opened(await createFleet({ SLUICE_STORE_URL: postgres.url, SLUICE_REDIS_URL: valkey.url }));
  const servers = [await fleet.start("one"), await fleet.start("two")];
  const fill = async (): Promise<void> => {
    fillDisk(disk);
    // A disk fills while a log is being written: the next piece of it has no place.
    await postgres.psql("select pg_switch_wal()").catch(() => {});
  };
  const free = async (): Promise<void> => {
    rmSync(join(disk, "filler"));
    if (!(await postgres.psql("select 1").catch(() => ""))) await postgres.start();
  };
  const drill = await playFull(fleet, servers, fill, free);
  const problems = [
    ...(drill.failed + drill.wrong === 0
      ? []
      : [`${drill.failed} checks failed, ${drill.wrong} were decided otherwise`]),
    ...(drill.refused.length > 0 ? [] : ["no change was refused"]),
    ...drill.otherErrors,
    ...drill.half,
    ...(drill.again ? [] : ["the change did not succeed afterwards"]),
  ];
  notes.judge("postgres", problems.length === 0, problems.join("; ") || `it does: ${drill.refused[0]}`);
}

export const diskFullDay: GameDay = gameDay(day);
