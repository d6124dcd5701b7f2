import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres, startServer, type TestPostgres, waitUntil } from "@sluice/test-servers";
import { createFleet, type Fleet, steerWell } from "../control-plane/start-fleet.ts";
import { createDraw } from "../leases/play-leases.ts";
import { type Sluice, startSluice } from "../restart/start-sluice.ts";
import { type DayNotes, type GameDay, gameDay, type PlayOptions } from "./game-day.ts";
import { connectTo } from "./open-servers.ts";
import { PacedTraffic, type Sent } from "./paced-traffic.ts";
import { seconds } from "./render-quantity.ts";

const patienceMs = 60_000;
const withinMs = 1000;
/** How long a switch stays as it is, once every node has it: long enough that a node which changes its mind is seen. */
const holdMs = 400;
const checksPerSecond = 50;
/** Nodes that changes are pushed to, and one that only polls. */
const names = ["one", "two", "three", "polling"];
const roundsFor = ({ form }: PlayOptions): number => (form === "full" ? 20 : 1);
const lastMsFor = ({ form }: PlayOptions): number => (form === "full" ? 20_000 : 3000);

type Mode = "open" | "closed";
type Key = "answered" | "steady" | "on" | "off" | "polled" | "notEarly" | "ended";

/** One node, with the traffic that only it gets. */
interface Watched {
  readonly name: string;
  readonly server: Sluice;
  readonly traffic: PacedTraffic;
}

/** Since the request to turn it, by node. */
interface Turn {
  readonly what: "on" | "off";
  readonly tookMs: ReadonlyMap<string, number>;
}

interface Stretch {
  readonly mode: Mode;
  /** When every node had it, and when its end was requested. */
  readonly fromMs: number;
  readonly toMs: number;
}

const day: GameDay<Key> = {
  name: "kill-switch",
  title: "Kill-switch drill",
  done: (options) => [
    `Four servers with a PostgreSQL and a Valkey get ${checksPerSecond} checks a second each.`,
    "PostgreSQL notifies three of them of changes; the fourth only polls (`--push none`).",
    `${roundsFor(options)} times an operator turns the kill switch on at one of them, by turns closed and open,`,
    "and off at another.",
    `At the end it is turned on for ${seconds(lastMsFor(options))}, and PostgreSQL is killed as soon as every server obeys.`,
    "Times are from sending the operator's request to the first answer that follows it.",
  ],
  promises: {
    answered: { text: "every check is answered by a server" },
    steady: {
      text: "once every server obeys, every check gets the switch's answer, on each of them, until it is turned off",
    },
    on: { text: "every server that is notified obeys within 1 s", timed: true },
    off: { text: "every server that is notified stops obeying within 1 s", timed: true },
    polled: { text: "the server that only polls follows within 2 s", timed: true },
    notEarly: { text: "with the policy store gone, no server stops obeying before the switch's end" },
    ended: { text: "then every server stops obeying at the switch's end, within 1 s", timed: true },
  },
  async play(notes, options) {
    const [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
    notes.opened(valkey);
    notes.opened(postgres);
    const env = { SLUICE_STORE_URL: postgres.url, SLUICE_REDIS_URL: valkey.url };
    const fleet = notes.opened(
      await createFleet(env, (own) =>
        startSluice(own.SLUICE_NODE_NAME === "polling" ? { ...own, SLUICE_PUSH: "none" } : own),
      ),
    );
    // The first creates the schema and the token.
    const nodes: Watched[] = [];
    for (const name of names) nodes.push(watch(name, await fleet.start(name)));
    await drill(notes, options, { fleet, postgres, nodes });
  },
};

function watch(name: string, server: Sluice): Watched {
  const limiter = connectTo(server);
  return { name, server, traffic: new PacedTraffic([limiter], (user) => ({ dimensions: { user } }), createDraw(1)) };
}

interface Cast {
  readonly fleet: Fleet;
  readonly postgres: TestPostgres;
  readonly nodes: readonly Watched[];
}

async function drill(notes: DayNotes<Key>, options: PlayOptions, cast: Cast): Promise<void> {
  const { fleet, nodes } = cast;
  const over = new AbortController();
  const rates = [["user", checksPerSecond]] as const;
  const running = nodes.map(({ traffic }) => traffic.run(() => rates, Number.POSITIVE_INFINITY, over.signal));
  const turns: Turn[] = [];
  const stretches: Stretch[] = [];
  let end: Ending;
  try {
    await untilAll(nodes, false, 0);
    for (let round = 0; round < roundsFor(options); round++) {
      const mode: Mode = round % 2 === 0 ? "closed" : "open";
      const [turnsOn, turnsOff] = [nodes[round % nodes.length]!, nodes[(round + 1) % nodes.length]!];
      const onMs = performance.now();
      await steerWell(turnsOn.server, fleet, "PUT", "/kill-switch", { mode, for_ms: 600_000, why: "a drill" });
      turns.push({ what: "on", tookMs: await untilAll(nodes, true, onMs) });
      const fromMs = performance.now();
      await sleep(holdMs);
      const offMs = performance.now();
      stretches.push({ mode, fromMs, toMs: offMs });
      await steerWell(turnsOff.server, fleet, "DELETE", "/kill-switch?why=over");
      turns.push({ what: "off", tookMs: await untilAll(nodes, false, offMs) });
      await sleep(holdMs);
    }
    end = await letItEnd(cast, lastMsFor(options));
    stretches.push({ mode: "closed", fromMs: end.fromMs, toMs: end.atMs });
  } finally {
    over.abort();
    await Promise.all(running);
  }
  judge(notes, nodes, { turns, stretches, end });
}

interface Ending {
  readonly fromMs: number;
  /** When it was to end, as `performance.now()` counts. */
  readonly atMs: number;
  readonly tookMs: ReadonlyMap<string, number>;
}

/** It is known to every node when it ends, so the store may be gone by then. */
async function letItEnd({ fleet, postgres, nodes }: Cast, forMs: number): Promise<Ending> {
  const [{ server }] = nodes as [Watched];
  const onMs = performance.now();
  const body = { mode: "closed", for_ms: forMs, why: "the last drill" };
  const answer = await steerWell(server, fleet, "PUT", "/kill-switch", body);
  const { until_ms: untilMs } = answer.kill_switch as { readonly until_ms: number };
  await untilAll(nodes, true, onMs);
  const fromMs = performance.now();
  await postgres.stop("SIGKILL");
  const atMs = untilMs - Date.now() + performance.now();
  await sleep(Math.max(0, atMs - performance.now()));
  return { fromMs, atMs, tookMs: await untilAll(nodes, false, atMs) };
}

const isForced = ({ degraded }: Sent): boolean => degraded === "kill_switch";

/** Waits until every node answers by the switch, or not by it; returns how long after `sinceMs` each of them began to. */
async function untilAll(nodes: readonly Watched[], forced: boolean, sinceMs: number): Promise<Map<string, number>> {
  const tookMs = new Map<string, number>();
  for (const { name, traffic } of nodes) {
    const settledMs = await waitUntil(`${name} ${forced ? "obeys" : "stops obeying"}`, patienceMs, async () => {
      const from = traffic.sent.findLastIndex(({ startedMs }) => startedMs < sinceMs) + 1;
      return traffic.sent.slice(from).find((one) => one.settledMs !== undefined && isForced(one) === forced)?.settledMs;
    });
    tookMs.set(name, settledMs - sinceMs);
  }
  return tookMs;
}

interface Drilled {
  readonly turns: readonly Turn[];
  readonly stretches: readonly Stretch[];
  readonly end: Ending;
}

function judge(notes: DayNotes<Key>, nodes: readonly Watched[], { turns, stretches, end }: Drilled): void {
  const sent = nodes.flatMap(({ traffic }) => traffic.sent);
  const failed = sent.filter(
    ({ error, degraded }) => error !== undefined || (degraded ?? "kill_switch") !== "kill_switch",
  );
  notes.judge("answered", failed.length === 0, `${failed.length} of ${sent.length} failed`);
  let obeyed = 0;
  let otherwise = 0;
  let early = 0;
  for (const { mode, fromMs, toMs } of stretches) {
    for (const one of sent.filter(({ startedMs, settledMs }) => startedMs >= fromMs && settledMs! < toMs)) {
      if (isForced(one) && one.allowed === (mode === "open")) obeyed += 1;
      else otherwise += 1;
      if (!isForced(one) && toMs === end.atMs) early += 1;
    }
  }
  notes.judge("steady", otherwise === 0 && obeyed > 0, `${otherwise} of ${obeyed + otherwise} were answered otherwise`);
  const pushed = names.filter((name) => name !== "polling");
  for (const what of ["on", "off"] as const) {
    const took = turns.filter((turn) => turn.what === what).map(({ tookMs }) => latest(tookMs, pushed));
    notes.judge(what, Math.max(...took) <= withinMs, renderTimes(took));
  }
  const polled = turns.map(({ tookMs }) => tookMs.get("polling")!);
  notes.judge("polled", Math.max(...polled) <= 2 * withinMs, renderTimes(polled));
  notes.judge("notEarly", early === 0, `${early} of all checks before its end were`);
  const late = latest(end.tookMs, names);
  notes.judge("ended", late <= withinMs, `after ${seconds(late)} at the latest`);
  plot(notes, turns);
}

function latest(tookMs: ReadonlyMap<string, number>, of: readonly string[]): number {
  return Math.max(...of.map((name) => tookMs.get(name) ?? Number.POSITIVE_INFINITY));
}

function renderTimes(tookMs: readonly number[]): string {
  const sorted = tookMs.toSorted((one, other) => one - other);
  return `${seconds(sorted[Math.floor(sorted.length / 2)]!)} at the median, ${seconds(sorted.at(-1)!)} at most`;
}

function plot(notes: DayNotes<Key>, turns: readonly Turn[]): void {
  const series = names.map((name) => ({
    name,
    points: turns.map(({ tookMs }, i) => [i / 2 + 1, tookMs.get(name)!] as const),
  }));
  notes.plot({
    name: "kill-switch",
    title: "From the operator's request to the first answer that follows it",
    x: "round: on, then off",
    y: "ms",
    series,
    levels: [{ y: withinMs, name: "promised" }],
  });
}

export const killSwitchDay: GameDay = gameDay(day);
