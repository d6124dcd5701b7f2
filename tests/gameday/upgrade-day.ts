import { startPostgres, startServer, waitUntil } from "@sluice/test-servers";
import type { CheckRequest, Decision } from "sluice";
import { createFleet, createPolicyDocument, decide, type Fleet, steerWell } from "../control-plane/start-fleet.ts";
import { createDraw } from "../leases/play-leases.ts";
import { followReadiness } from "../restart/follow-readiness.ts";
import { main, type Sluice, startProgram } from "../restart/start-sluice.ts";
import { type Caller, grpcCaller, httpCaller, respCaller, startTraffic, streamCaller } from "../restart/traffic.ts";
import { checkOutVersion } from "./check-out-version.ts";
import { type DayNotes, type GameDay, gameDay, type PlayOptions } from "./game-day.ts";
import { beyondBound, limitedThreeWays } from "./judge-subjects.ts";
import { connectTo } from "./open-servers.ts";
import { bySubject, isAdmitted, isCounted, PacedTraffic, perSecond, type Sent } from "./paced-traffic.ts";
import { percent } from "./render-quantity.ts";

const patienceMs = 60_000;
const drain = "2s";
const quota = 1_000_000_000;
const exact = "exact";
const serversFor = ({ form }: PlayOptions): number => (form === "full" ? 3 : 2);
/** Calls of every protocol between two steps. */
const callsFor = ({ form }: PlayOptions): number => (form === "full" ? 400 : 50);

const renderPolicies = (limit: number): string =>
  JSON.stringify({
    policies: [
      ...limitedThreeWays.policies,
      createPolicyDocument("p", limit),
      {
        id: exact,
        match: { user: exact },
        limits: [{ by: ["user"], algorithm: "fixed_window", windows: [`${quota} once`] }],
        on_failure: "closed",
      },
    ],
  });

type Key = "answered" | "once" | "bound" | "share" | "changes" | "ended";

const day: GameDay<Key> = {
  name: "upgrade",
  title: "Rolling upgrade under traffic",
  done: (options) => [
    `${serversFor(options)} servers of ${options.upgradeFrom ?? "the previous commit"} share a PostgreSQL and a Valkey.`,
    "One after the other is replaced by a server of the current version:",
    `the new one starts and is ready, then the old one gets SIGTERM and drains for ${drain.replace("s", " s")}.`,
    "Callers over HTTP, gRPC, gRPC streams and Redis's protocol send checks all the time, never repeat one,",
    "and three subjects ask for more than their limits: by GCRA, by a fixed window, and by leases.",
    "While both versions run, a policy is changed on a server of each.",
  ],
  promises: {
    answered: { text: "no call fails, over any protocol, and none is answered without counters" },
    once: { text: "every allowed check is charged exactly once, as a server of the new version counts" },
    bound: { text: "old and new servers together admit no more than each limit" },
    share: { text: "every subject gets at least 90 % of its limit all along", timed: true },
    changes: { text: "a change made on a server of either version is in force on all of both" },
    ended: { text: "every old server exits with 0, and cuts no call off" },
  },
  async play(notes, options) {
    const version = notes.opened(await checkOutVersion(options.upgradeFrom));
    const [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
    notes.opened(valkey);
    notes.opened(postgres);
    const env = { SLUICE_STORE_URL: postgres.url, SLUICE_REDIS_URL: valkey.url, SLUICE_DRAIN: drain };
    const fleet = notes.opened(
      await createFleet(env, (own) => {
        const program = own.SLUICE_NODE_NAME?.startsWith("old") === true ? version.main : main;
        return startProgram(own, program, "serve", "--log-format", "json");
      }),
    );
    const first = await fleet.start("old-0");
    await steerWell(first, fleet, "POST", "/import", renderPolicies(1));
    const more = Array.from({ length: serversFor(options) - 1 }, (_, i) => fleet.start(`old-${i + 1}`));
    const old = [first, ...(await Promise.all(more))];
    await untilLimit(old, 1);
    await upgrade(notes, options, fleet, old);
    notes.fact(`from commit ${version.commit}`);
  },
};

async function untilLimit(servers: readonly Sluice[], limit: number): Promise<void> {
  for (const server of servers)
    await waitUntil(`a limit of ${limit} is in force`, patienceMs, async () =>
      (await decide(server)).limit === limit ? true : undefined,
    );
}

/** Sends each check to one of the servers that are ready. */
class Router {
  readonly #limiters = new Map<Sluice, ReturnType<typeof connectTo>>();
  #ready: readonly Sluice[] = [];
  #turn = 0;

  use(ready: readonly Sluice[]): void {
    this.#ready = ready;
    for (const server of ready) if (!this.#limiters.has(server)) this.#limiters.set(server, connectTo(server));
  }

  check(request: CheckRequest): Promise<Decision> {
    const server = this.#ready[this.#turn++ % this.#ready.length]!;
    return this.#limiters.get(server)!.check(request);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#limiters.values()].map((one) => one.close()));
  }
}

async function upgrade(
  notes: DayNotes<Key>,
  options: PlayOptions,
  fleet: Fleet,
  old: readonly Sluice[],
): Promise<void> {
  const router = new Router();
  const byReadiness = [httpCaller(exact), respCaller(exact)];
  const byChannel = [grpcCaller(exact), streamCaller(exact)];
  const callers: readonly Caller[] = [...byReadiness, ...byChannel];
  const useReady = (ready: readonly Sluice[]): void => {
    for (const one of [router, ...byReadiness]) one.use(ready);
  };
  let open = [...old];
  for (const one of [router, ...callers]) one.use(open);
  let unfollow = followReadiness(open, useReady);
  const traffic = callers.map((caller) => startTraffic(caller, 2));
  const paced = new PacedTraffic([router], (user) => ({ dimensions: { user } }), createDraw(4));
  const over = new AbortController();
  const beganMs = performance.now();
  const running = paced.run(() => limitedThreeWays.rates, Number.POSITIVE_INFINITY, over.signal);
  const marks: { x: number; name: string }[] = [];
  const codes: (number | null)[] = [];
  const goOn = async (): Promise<void> => {
    const aims = traffic.map(({ tally }) => tally.allowed + tally.failures.length + callsFor(options));
    await waitUntil("every protocol goes on", patienceMs, async () =>
      traffic.every(({ tally }, i) => tally.allowed + tally.failures.length >= aims[i]!) ? true : undefined,
    );
  };
  const changes: string[] = [];
  try {
    await goOn();
    for (const [i, leaving] of old.entries()) {
      const joining = await fleet.start(`new-${i}`);
      await unfollow();
      open = [...open, joining];
      unfollow = followReadiness(open, useReady);
      for (const caller of byChannel) caller.use(open);
      await goOn();
      if (i === 0) changes.push(...(await changeOnBoth(fleet, open, [leaving, joining])));
      codes.push(await leaving.stop());
      marks.push({ x: (performance.now() - beganMs) / 1000, name: `${i + 1} of ${old.length} replaced` });
      await goOn();
      open = open.filter((one) => one !== leaving);
      for (const caller of byChannel) caller.use(open);
    }
  } finally {
    over.abort();
    await Promise.all([running, ...traffic.map((one) => one.stop())]);
    await unfollow();
  }
  const lastingMs = performance.now() - beganMs;
  const taken = await readTaken(open[0]!);
  await Promise.all([router, ...callers].map((one) => one.close()));
  notes.judge("changes", changes.length === 0, changes.join("; ") || "both were");
  const cut = old.filter(({ log }) => log.includes("cut off")).length;
  notes.judge(
    "ended",
    codes.every((code) => code === 0) && cut === 0,
    `exit codes ${codes.join(", ")}; ${cut} cut off`,
  );
  const failures = traffic.flatMap(({ tally }, i) => tally.failures.map((one) => `${callers[i]!.name}: ${one}`));
  const allowed = traffic.reduce((sum, { tally }) => sum + tally.allowed, 0);
  judge(notes, { failures, allowed, taken, sent: paced.sent, lastingMs });
  plot(notes, paced.sent, beganMs, marks);
}

/** Returns what was wrong. The old version makes the first change, and the new one the second. */
async function changeOnBoth(fleet: Fleet, all: readonly Sluice[], by: readonly Sluice[]): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const [i, server] of by.entries()) {
    const what = i === 0 ? "the change by the old version" : "the change by the new version";
    try {
      await steerWell(server, fleet, "POST", "/import", renderPolicies(i + 2));
      await untilLimit(all, i + 2);
    } catch (error) {
      wrong.push(`${what}: ${(error as Error).message}`);
    }
  }
  return wrong;
}

/** What is gone from the quota. */
async function readTaken({ http }: Sluice): Promise<number> {
  const body = JSON.stringify({ dimensions: { user: exact }, preview: true });
  const headers = { "content-type": "application/json", connection: "close" };
  const answer = (await (await fetch(`${http}/v1/check`, { method: "POST", headers, body })).json()) as Decision;
  return quota - (answer.remaining ?? 0);
}

interface Upgraded {
  /** Of the callers that send over every protocol. */
  readonly failures: readonly string[];
  readonly allowed: number;
  readonly taken: number;
  readonly sent: readonly Sent[];
  readonly lastingMs: number;
}

function judge(notes: DayNotes<Key>, { failures, allowed, taken, sent, lastingMs }: Upgraded): void {
  const other = sent.filter((one) => !isCounted(one)).map(({ error, degraded }) => `paced: ${error ?? degraded}`);
  const failed = [...failures, ...other];
  const first = failed.length === 0 ? "" : `, the first with ${failed[0]}`;
  notes.judge("answered", failed.length === 0, `${failed.length} of ${allowed + sent.length} failed${first}`);
  notes.judge("once", taken === allowed, `${taken} charged, ${allowed} allowed`);
  const beyond: string[] = [];
  let least = Number.POSITIVE_INFINITY;
  for (const [subject, own] of bySubject(sent)) {
    const limit = limitedThreeWays.subjects[subject]!;
    const excess = beyondBound(own, limit);
    if (excess > 0) beyond.push(`${subject} ${excess}`);
    least = Math.min(least, own.filter(isAdmitted).length / ((limit.perSecond * lastingMs) / 1000));
  }
  notes.judge(
    "bound",
    beyond.length === 0,
    beyond.length === 0 ? "none was exceeded" : `beyond it: ${beyond.join(", ")}`,
  );
  notes.judge("share", least >= 0.9, `at least ${percent(least)}`);
}

function plot(
  notes: DayNotes<Key>,
  sent: readonly Sent[],
  beganMs: number,
  marks: readonly { readonly x: number; readonly name: string }[],
): void {
  const leased = bySubject(sent).get("leased")!;
  notes.plot({
    name: "upgrade",
    title: "A limit that is enforced by leases, while servers are replaced",
    x: "seconds",
    y: "checks a second",
    series: [
      { name: "asked", points: perSecond(leased, beganMs) },
      { name: "admitted", points: perSecond(leased.filter(isAdmitted), beganMs) },
    ],
    levels: [{ y: limitedThreeWays.subjects.leased!.perSecond, name: "its limit" }],
    marks,
  });
}

export const upgradeDay: GameDay = gameDay(day);
