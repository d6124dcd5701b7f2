import { setTimeout as sleep } from "node:timers/promises";
import { startCluster, type TestCluster, type TestServer, waitUntil } from "@sluice/test-servers";
import { createDraw } from "../leases/play-leases.ts";
import { type DayNotes, type GameDay, gameDay, type PlayOptions } from "./game-day.ts";
import { beyondBound, type SubjectLimit } from "./judge-subjects.ts";
import { type OpenServers, openServers } from "./open-servers.ts";
import { bySubject, isCounted, PacedTraffic, type Sent } from "./paced-traffic.ts";
import { percent, seconds } from "./render-quantity.ts";
import { scrapeAll } from "./scrape.ts";

const shards = 10;
const tight: SubjectLimit = { burst: 10, perSecond: 5, allowance: 0 };
const scrapeMs = 15_000;
const mostOpen = 0.01;
const enforcedWithinMs = 10_000;
const patienceMs = 90_000;
/** Twenty shards, servers and traffic share few cores here: a shard that waits for one is not a shard that was killed. */
const deadline = "250ms";

const policies = {
  default: "none",
  policies: [
    { id: "calm", match: { endpoint: "/calm" }, limits: [{ by: ["user"], windows: ["500/s"] }], on_failure: "open" },
    {
      id: "tight",
      match: { endpoint: "/tight" },
      limits: [{ by: ["user"], windows: [`${tight.perSecond}/s burst ${tight.burst}`] }],
      on_failure: "open",
    },
  ],
};

interface Course {
  readonly calmUsers: number;
  readonly tightUsers: number;
  /** When a shard is killed. */
  readonly killsMs: readonly number[];
  /** How long after that it is started again. */
  readonly downMs: number;
  readonly forMs: number;
  /** Of each shard. Without one, a killed shard is gone until it is started again. */
  readonly replicas: number;
}

const full: Course = {
  calmUsers: 150,
  tightUsers: 60,
  killsMs: [30_000, 120_000, 210_000],
  downMs: 30_000,
  forMs: 300_000,
  replicas: 1,
};
const bounded: Course = { calmUsers: 60, tightUsers: 40, killsMs: [1500], downMs: 1500, forMs: 90_000, replicas: 0 };
const courseFor = ({ form }: PlayOptions): Course => (form === "full" ? full : bounded);

interface Kill {
  readonly atMs: number;
  readonly server: TestServer;
}

interface Sample {
  readonly atMs: number;
  readonly checks: number;
  readonly open: number;
}

type Key = "answered" | "open" | "counted" | "visible" | "few" | "enforced" | "enforcedAtAll" | "bound";

const day: GameDay<Key> = {
  name: "chaos",
  title: "Chaos: a tenth of the shards is killed",
  done: (options) => {
    const { killsMs, forMs, replicas, downMs } = courseFor(options);
    return [
      `Two servers count on a Valkey Cluster of ${shards} shards${replicas === 0 ? " without replicas" : ", each with a replica"}.`,
      `For ${seconds(forMs)}, users whose limits are never reached and users that ask for more than their limit send traffic.`,
      `${killsMs.length === 1 ? "Once" : `${killsMs.length} times`} a shard chosen at random is killed with SIGKILL,`,
      `and started again ${seconds(downMs)} later. Every policy has \`on_failure: open\`.`,
      "The servers have `cluster-require-full-coverage no`: without it all shards refuse commands until a replica takes over.",
      `A check waits ${deadline.replace("ms", " ms")} for its counters, because all of it shares the cores of one machine.`,
    ];
  },
  promises: {
    answered: { text: "every check is answered by a server" },
    open: { text: "a check that the killed shard should have decided is allowed, as its policy says" },
    counted: { text: "`/metrics` counts exactly the checks that were answered without counters" },
    visible: { text: "they show in `/metrics` within one scrape of 15 s", timed: true },
    few: { text: "at most 1 % of all decisions are open", timed: true },
    enforced: { text: "limits are enforced again within 10 s of each kill", timed: true },
    enforcedAtAll: { text: "every limit is enforced again" },
    bound: { text: "counters admit burst + rate × time, and at most one burst more for each shard that was lost" },
  },
  async play(notes, options) {
    const course = courseFor(options);
    const cluster = notes.opened(
      await startCluster({
        flavor: "valkey",
        shards,
        replicas: course.replicas,
        // By default a cluster answers nothing while a shard is down, so that one outage is that of all shards.
        args: ["--cluster-require-full-coverage", "no"],
      }),
    );
    const addresses = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
    const fleet = notes.opened(await openServers(2, { policies, redis: `redis+cluster://${addresses}`, deadline }));
    await run(notes, course, cluster, fleet);
  },
};

async function run(notes: DayNotes<Key>, course: Course, cluster: TestCluster, fleet: OpenServers): Promise<void> {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = createDraw(seed);
  const traffic = new PacedTraffic(
    fleet.limiters,
    (subject) => ({ dimensions: { endpoint: `/${subject.split(" ")[0]}`, user: subject } }),
    random,
  );
  const rates = [
    ...Array.from({ length: course.calmUsers }, (_, i) => [`calm ${i}`, 3] as const),
    ...Array.from({ length: course.tightUsers }, (_, i) => [`tight ${i}`, tight.perSecond * 1.6] as const),
  ];
  const over = new AbortController();
  const samples: Sample[] = [];
  const beganMs = performance.now();
  const running = traffic.run(() => rates, course.forMs, over.signal);
  const sampling = sample(fleet, samples, over.signal);
  const kills: Kill[] = [];
  try {
    for (const killMs of course.killsMs) {
      await sleep(Math.max(0, beganMs + killMs - performance.now()));
      kills.push(await killOne(notes, cluster, random, course, beganMs));
    }
    if (course.replicas === 0) await untilEnforced(traffic, kills);
    else await running;
  } finally {
    over.abort();
    await Promise.all([running, sampling]);
  }
  const last = await scrapeAll(fleet.servers);
  samples.push(readSample(last));
  judge(notes, { beganMs, kills, samples, sent: traffic.sent });
  notes.fact(
    `${traffic.sent.length} checks; the seed ${seed} chose the shards on ports ${kills.map(({ server }) => server.port).join(", ")}`,
  );
}

async function killOne(
  notes: DayNotes<Key>,
  cluster: TestCluster,
  random: () => number,
  course: Course,
  beganMs: number,
): Promise<Kill> {
  const server = await cluster.ownerOf(Math.floor(random() * 16_384));
  const atMs = performance.now();
  await server.kill();
  if (course.replicas > 0) {
    await cluster.waitUntilOk(patienceMs);
    notes.fact(
      `after ${seconds(atMs - beganMs)}: the replica had taken over ${seconds(performance.now() - atMs)} after the kill`,
      "timed",
    );
  }
  await sleep(Math.max(0, atMs + course.downMs - performance.now()));
  await server.restart();
  await cluster.waitUntilOk(patienceMs);
  return { atMs, server };
}

const readSample = (page: Awaited<ReturnType<typeof scrapeAll>>): Sample => ({
  atMs: performance.now(),
  checks: page.sum("sluice_checks_total"),
  open: page.sum("sluice_degraded_decisions_total", { allowed: "true" }),
});

async function sample({ servers }: OpenServers, samples: Sample[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    samples.push(readSample(await scrapeAll(servers)));
    await sleep(500);
  }
}

/** When each user that asks too much was first denied by its counters after its last answer without them. */
function enforcedAfter(sent: readonly Sent[], fromMs: number, untilMs: number): number {
  let latest = 0;
  for (const [subject, all] of bySubject(sent)) {
    if (!subject.startsWith("tight")) continue;
    // What the next kill overtakes says nothing about this one.
    const own = all.filter(({ startedMs, settledMs }) => startedMs >= fromMs && settledMs! < untilMs);
    const lastOpen = own.findLastIndex((one) => !isCounted(one));
    const denied = own.slice(lastOpen + 1).find((one) => isCounted(one) && !one.allowed);
    if (denied === undefined) return Number.POSITIVE_INFINITY;
    if (lastOpen >= 0) latest = Math.max(latest, denied.settledMs! - fromMs);
  }
  return latest;
}

async function untilEnforced({ sent }: PacedTraffic, kills: readonly Kill[]): Promise<void> {
  const { atMs } = kills.at(-1)!;
  await waitUntil("every limit is enforced again", patienceMs, async () => {
    const settled = sent.filter(({ settledMs }) => settledMs !== undefined);
    return enforcedAfter(settled, atMs, Number.POSITIVE_INFINITY) < Number.POSITIVE_INFINITY || undefined;
  });
  // Long enough that a limit which is not enforced would show.
  await sleep(1000);
}

interface Played {
  readonly beganMs: number;
  readonly kills: readonly Kill[];
  readonly samples: readonly Sample[];
  readonly sent: readonly Sent[];
}

function judge(notes: DayNotes<Key>, { beganMs, kills, samples, sent }: Played): void {
  const open = sent.filter(({ degraded }) => degraded !== undefined);
  const failed = sent.filter(({ error }) => error !== undefined);
  const denied = open.filter(({ allowed }) => !allowed);
  notes.judge(
    "answered",
    failed.length === 0,
    `${failed.length} of ${sent.length} failed${failed[0] === undefined ? "" : `, the first with ${failed[0].error}`}`,
  );
  notes.judge("open", denied.length === 0 && open.length > 0, `${denied.length} of ${open.length} were denied`);
  const last = samples.at(-1)!;
  notes.judge(
    "counted",
    last.open === open.length && last.checks === sent.length,
    `${last.open} of ${last.checks} in metrics, ${open.length} of ${sent.length} at the callers`,
  );
  const visibleMs = kills.map(({ atMs }) => {
    const before = samples.findLast((one) => one.atMs <= atMs)?.open ?? 0;
    return (samples.find((one) => one.atMs > atMs && one.open > before)?.atMs ?? Number.POSITIVE_INFINITY) - atMs;
  });
  const slowest = Math.max(...visibleMs);
  notes.judge("visible", slowest <= scrapeMs, `${seconds(slowest)} at the latest`);
  const share = open.length / sent.length;
  notes.judge("few", share <= mostOpen, `${percent(share)} (${open.length} of ${sent.length})`);
  const enforcedMs = kills.map(({ atMs }, i) =>
    enforcedAfter(sent, atMs, kills[i + 1]?.atMs ?? Number.POSITIVE_INFINITY),
  );
  const latest = Math.max(...enforcedMs);
  notes.judge("enforced", latest <= enforcedWithinMs, `after ${enforcedMs.map(seconds).join(", ")}`);
  notes.judge("enforcedAtAll", Number.isFinite(latest), Number.isFinite(latest) ? "all were" : "some were not");
  const beyond = judgeBound(sent, kills);
  notes.judge(
    "bound",
    beyond <= tight.burst,
    `at most ${beyond} beyond burst + rate × time, of a burst of ${tight.burst}`,
  );
  const reasons = new Map<string, number>();
  for (const { degraded = "" } of open) reasons.set(degraded, (reasons.get(degraded) ?? 0) + 1);
  notes.fact(`open: ${[...reasons].map(([reason, count]) => `${count} ${reason}`).join(", ") || "none"}`, "timed");
  notes.plot({
    name: "chaos",
    title: "Decisions without counters, while a tenth of the shards is killed",
    x: "seconds",
    y: "% of all decisions, second by second",
    series: [{ name: "open", points: openShares(samples, beganMs) }],
    marks: kills.map(({ atMs }) => ({ x: (atMs - beganMs) / 1000, name: "a shard is killed" })),
  });
}

/** Between the kill before and the kill after, a loss of counters is worth one burst. */
function judgeBound(sent: readonly Sent[], kills: readonly Kill[]): number {
  let most = 0;
  for (const [subject, own] of bySubject(sent)) {
    if (!subject.startsWith("tight")) continue;
    for (const [i] of kills.entries()) {
      const [from, until] = [kills[i - 1]?.atMs ?? 0, kills[i + 1]?.atMs ?? Number.POSITIVE_INFINITY];
      const stretch = own.filter((one) => one.startedMs >= from && one.settledMs! < until);
      most = Math.max(most, beyondBound(stretch, tight));
    }
  }
  return most;
}

function openShares(samples: readonly Sample[], beganMs: number): readonly (readonly [number, number])[] {
  const points: [number, number][] = [];
  let before = samples[0]!;
  for (const one of samples) {
    if (one.atMs - before.atMs < 1000 || one.checks === before.checks) continue;
    points.push([(one.atMs - beganMs) / 1000, (100 * (one.open - before.open)) / (one.checks - before.checks)]);
    before = one;
  }
  return points;
}

export const chaosDay: GameDay = gameDay(day);
