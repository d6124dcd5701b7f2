import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createFaultyProxy, type FaultyProxy, startServer } from "@sluice/test-servers";
import type { LeasedCountersStats } from "sluice/internal";
import { expect, test } from "vitest";
import { judgeSteadyOvershoot, renderOvershoot } from "./judge-overshoot.ts";
import { judgedWindows, type Noted } from "./leased-lines.ts";
import { createDraw } from "./play-leases.ts";

const program = fileURLToPath(new URL("lease-process.ts", import.meta.url));
const processes = 4;
const faultyMs = 12_000;
const calmMs = 2000;
/** The largest difference between the deciding clock and the recorded one, with the time of reading them. */
const clockMs = 2;

/** A process that leases, behind its own proxy. */
class Leasing {
  readonly proxy: FaultyProxy;
  readonly #folder: string;
  readonly #baseNs: bigint;
  #child: ChildProcess;
  #output: AsyncIterator<string>;
  #lives = 0;

  static async start(target: { host: string; port: number }, folder: string, baseNs: bigint): Promise<Leasing> {
    const leasing = new Leasing(await createFaultyProxy(target), folder, baseNs);
    await leasing.#output.next();
    return leasing;
  }

  private constructor(proxy: FaultyProxy, folder: string, baseNs: bigint) {
    this.proxy = proxy;
    this.#folder = folder;
    this.#baseNs = baseNs;
    [this.#child, this.#output] = this.#spawn();
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Kills it, and restarts it. */
  async crash(): Promise<void> {
    await this.kill();
    [this.#child, this.#output] = this.#spawn();
    await this.#output.next();
  }

  /** Stops it in order. Returns its counts. */
  async stop(): Promise<LeasedCountersStats> {
    this.#child.stdin!.write("stop\n");
    return JSON.parse((await this.#output.next()).value) as LeasedCountersStats;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }

  /** Every run has its own log: the end of one that was killed may be half a line. */
  #spawn(): [ChildProcess, AsyncIterator<string>] {
    this.#lives += 1;
    const log = join(this.#folder, `${this.proxy.port}-${this.#lives}.log`);
    const child = spawn(process.execPath, ["-C", "source", program, this.proxy.url, log, String(this.#baseNs)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    return [child, createInterface({ input: child.stdout! })[Symbol.asyncIterator]()];
  }
}

async function readNoted(folder: string): Promise<Noted[]> {
  const texts = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")));
  return texts
    .flatMap((text) => text.split("\n").slice(0, -1))
    .map((row) => {
      const [line = "", user = "", fromMs, toMs, cost] = row.split(" ");
      return { line, user, fromMs: Number(fromMs) - clockMs, toMs: Number(toMs) + clockMs, cost: Number(cost) };
    });
}

test("processes that are stopped, killed and cut off never admit more together than stated", async () => {
  const seed = Date.now() % 2 ** 31;
  const draw = createDraw(seed);
  const baseNs = process.hrtime.bigint();
  const originMs = Date.now();
  const folder = await mkdtemp(join(tmpdir(), "sluice-leases-"));
  const server = await startServer({ flavor: "valkey" });
  const all: Leasing[] = [];
  try {
    all.push(...(await Promise.all(Array.from({ length: processes }, () => Leasing.start(server, folder, baseNs)))));
    const untilMs = performance.now() + faultyMs;
    // Each has its own faults. A pause outlives a lease and its hold.
    const misfortunes = all.map(async (one) => {
      while (performance.now() < untilMs) {
        await sleep(2500 * draw());
        const lot = draw();
        if (lot < 0.45) {
          one.signal("SIGSTOP");
          await sleep(3000 * draw());
          one.signal("SIGCONT");
        } else if (lot < 0.75) one.proxy.dropRepliesOnce();
        else if (lot < 0.85) {
          one.proxy.delayMs = 600 * draw();
          await sleep(700);
          one.proxy.heal();
        } else if (lot < 0.9) {
          one.proxy.blackhole();
          await sleep(1500 * draw());
          one.proxy.heal();
        } else await one.crash();
      }
      one.proxy.heal();
    });
    await Promise.all(misfortunes);
    await sleep(calmMs);
    const stats = await Promise.all(all.map((one) => one.stop()));
    const noted = await readNoted(folder);
    expect(noted.filter(({ cost, fromMs, toMs }) => !(cost > 0 && fromMs < toMs))).toEqual([]);
    for (const { name, course, counts } of judgedWindows(originMs)) {
      const admissions = noted.filter(counts);
      expect(admissions.length, name).toBeGreaterThan(100);
      const worst = judgeSteadyOvershoot(admissions, course);
      expect(worst.beyond, `seed ${seed}, ${name}: ${renderOvershoot(worst)}`).toBeLessThanOrEqual(0);
    }
    // The test was meaningful: leases were spent.
    expect(stats.reduce((sum, { local }) => sum + local, 0)).toBeGreaterThan(100);
  } finally {
    for (const one of all) {
      one.signal("SIGCONT");
      await one.kill();
      await one.proxy.close();
    }
    await server.close();
    await rm(folder, { recursive: true });
  }
}, 120_000);
