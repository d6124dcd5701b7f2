import { setTimeout as sleep } from "node:timers/promises";
import { createFaultyProxy, startPostgres, startServer, type TestPostgres, waitUntil } from "@sluice/test-servers";
import { createFleet, decide, type Fleet, readStatus, steer, steerWell } from "../control-plane/start-fleet.ts";
import { createDraw } from "../leases/play-leases.ts";
import { type Sluice, startSluice } from "../restart/start-sluice.ts";
import { type DayNotes, type GameDay, gameDay, type PlayOptions } from "./game-day.ts";
import { beyondBound, type SubjectLimit } from "./judge-subjects.ts";
import { connectTo } from "./open-servers.ts";
import { bySubject, isAdmitted, isCounted, PacedTraffic, perSecond } from "./paced-traffic.ts";
import { percent, seconds } from "./render-quantity.ts";
import { scrape } from "./scrape.ts";

const patienceMs = 90_000;
/** Far longer than any server takes: what is not answered in time is then not the machine's doing. */
const deadline = "20s";
const sampleMs = 200;
const appliedWithinMs = 10_000;
const changesMeanwhile = 5;
/** Of the original length, so that an hour is over before the store is back. */
const lostHours = 13 / 12;
const hourMsFor = ({ form }: PlayOptions): number => (form === "full" ? 60_000 : 6000);

const before: SubjectLimit = { perSecond: 20, burst: 20, allowance: 0 };
/** What operators set it to while the nodes cannot hear of it, one after the other. */
const changed = Array.from({ length: changesMeanwhile }, (_, i) => 21 + i);
const newest = changed.at(-1)!;
const overridden = 77;
const rates = [
  ["busy", 2 * before.perSecond],
  ["calm", before.perSecond / 2],
] as const;

type Key =
  | "answered"
  | "policies"
  | "bound"
  | "share"
  | "reported"
  | "refused"
  | "override"
  | "restart"
  | "once"
  | "soon"
  | "history";

const day: GameDay<Key> = {
  name: "store-lost",
  title: "The policy store is lost for an hour",
  done: (options) => {
    const hourMs = hourMsFor(options);
    return [
      `An hour lasts ${seconds(hourMs)} here, and so does \`--store-grace\`; servers poll every second, as they always do.`,
      "Four servers share a PostgreSQL and a Valkey; two of them get traffic, from a subject beyond its limit and one within.",
      "PostgreSQL is killed with SIGKILL. After 30 minutes a third server is killed too, and started again.",
      `After 40 minutes PostgreSQL is back, but only the fourth server reaches it, where operators make ${changesMeanwhile} changes.`,
      "After 65 minutes the others reach it again.",
    ];
  },
  promises: {
    answered: { text: "every check is answered by a server, with its counters" },
    policies: { text: "both servers decide by the last policies that they received, and stay ready" },
    bound: { text: "no subject gets more than its limit" },
    share: { text: "every subject gets at least 90 % of what one counter would have admitted", timed: true },
    reported: { text: "both report the store as `away`, and as `expired` after the hour" },
    refused: { text: "a change is refused with `policy_store_unavailable`" },
    override: { text: "an override ends on time on both servers" },
    restart: { text: "a server that restarts meanwhile is ready with the last policies" },
    once: { text: "when the store is back, each server applies the newest generation once, and none in between" },
    soon: { text: "that takes at most 10 s", timed: true },
    history: { text: "afterwards the usage history has every check of that time exactly once" },
  },
  async play(notes, options) {
    const [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
    notes.opened(valkey);
    notes.opened(postgres);
    const proxy = notes.opened(await createFaultyProxy({ host: "127.0.0.1", port: postgres.port }));
    const through = new URL(postgres.url);
    through.port = String(proxy.port);
    const env = {
      SLUICE_REDIS_URL: valkey.url,
      SLUICE_STORE_GRACE: `${hourMsFor(options)}ms`,
      SLUICE_DEADLINE: deadline,
    };
    const fleet = notes.opened(
      await createFleet(env, (own) =>
        startSluice({ ...own, SLUICE_STORE_URL: own.SLUICE_NODE_NAME === "four" ? postgres.url : through.href }),
      ),
    );
    const four = await fleet.start("four");
    const [one, two, three] = await Promise.all([fleet.start("one"), fleet.start("two"), fleet.start("three")]);
    const cut = (): void => {
      proxy.refuse();
      proxy.resetAll();
    };
    await lose(notes, options, { fleet, postgres, cut, heal: () => proxy.heal(), asked: [one, two], three, four });
  },
};

interface Cast {
  readonly fleet: Fleet;
  readonly postgres: TestPostgres;
  readonly cut: () => void;
  readonly heal: () => void;
  /** The ones with traffic. */
  readonly asked: readonly Sluice[];
  readonly three: Sluice;
  /** Where operators make changes. */
  readonly four: Sluice;
}

const renderPolicies = (limit: number): string =>
  JSON.stringify({
    policies: [{ id: "p", limits: [{ by: ["user"], windows: [`${limit}/s`] }], on_failure: "closed" }],
  });

const limitOn = async (server: Sluice, user = "looked at"): Promise<unknown> => (await decide(server, "p", user)).limit;

/** What the servers with traffic said about themselves over time. */
interface Seen {
  readonly limits: Set<unknown>;
  readonly states: readonly Set<unknown>[];
  looks: number;
  unready: number;
}

async function lose(notes: DayNotes<Key>, options: PlayOptions, cast: Cast): Promise<void> {
  const { fleet, postgres, asked, three, four } = cast;
  const hourMs = hourMsFor(options);
  await steerWell(four, fleet, "POST", "/import", renderPolicies(before.perSecond));
  await untilLimit([...asked, three, four], before.perSecond);
  const limiters = asked.map(connectTo);
  const traffic = new PacedTraffic(limiters, (user) => ({ dimensions: { user } }), createDraw(2));
  const over = new AbortController();
  const sinceMs = Date.now();
  const beganMs = performance.now();
  const running = traffic.run(() => rates, Number.POSITIVE_INFINITY, over.signal);
  const seen: Seen = { limits: new Set(), states: asked.map(() => new Set()), looks: 0, unready: 0 };
  const marks: { x: number; name: string }[] = [];
  const mark = (name: string): void => void marks.push({ x: (performance.now() - beganMs) / 1000, name });
  let looking: Promise<void> | undefined;
  try {
    const untilMs = Date.now() + hourMs / 2;
    const override = { policy: "p", windows: [`${overridden}/s`], until_ms: untilMs, why: "a launch" };
    await steerWell(four, fleet, "PUT", "/subjects/user/launch/override", override);
    await untilLimit(asked, overridden, "launch");
    cast.cut();
    await postgres.stop("SIGKILL");
    const lostMs = performance.now();
    mark("the store is killed");
    const lookOver = new AbortController();
    looking = look(asked, seen, lookOver.signal);
    const wrong = await watchOverride(asked, untilMs);
    notes.judge("override", wrong.length === 0, wrong.join("; ") || "it did");
    notes.judge("refused", ...(await tryChange(cast)));
    await three.kill();
    const again = await fleet.start("three");
    const limit = await limitOn(again);
    notes.judge("restart", limit === before.perSecond, `it is ready, and decides by a limit of ${limit}/s`);
    await sleep(Math.max(0, lostMs + (hourMs * 2) / 3 - performance.now()));
    await changeMeanwhile(cast);
    mark("operators change the limit");
    await sleep(Math.max(0, lostMs + hourMs * lostHours - performance.now()));
    await waitUntil(
      "the grace is over",
      patienceMs,
      async () => seen.states.every((one) => one.has("expired")) || undefined,
    ).catch(() => {});
    judgeLooks(notes, seen);
    await comeBack(notes, { ...cast, three: again }, mark, seen);
    lookOver.abort();
  } finally {
    over.abort();
    await Promise.all([running, looking]);
    await Promise.all(limiters.map((one) => one.close()));
  }
  await judgeTraffic(notes, traffic, { cast, sinceMs, beganMs, marks });
}

async function untilLimit(servers: readonly Sluice[], limit: number, user?: string): Promise<void> {
  for (const server of servers)
    await waitUntil(`a limit of ${limit} is in force`, patienceMs, async () =>
      (await limitOn(server, user)) === limit ? true : undefined,
    );
}

async function look(servers: readonly Sluice[], seen: Seen, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const [i, server] of servers.entries()) {
      seen.limits.add(await limitOn(server));
      seen.states[i]!.add((await readStatus(server)).store.state);
      if (!(await server.isReady())) seen.unready += 1;
      seen.looks += 1;
    }
    await sleep(sampleMs);
  }
}

/** Resolves after its end, with what was wrong. */
async function watchOverride(servers: readonly Sluice[], untilMs: number): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (let isOver = false; !isOver; await sleep(20)) {
    for (const server of servers) {
      const askedMs = Date.now();
      isOver = askedMs >= untilMs;
      const limit = await limitOn(server, "launch");
      if (Date.now() < untilMs && limit !== overridden)
        wrong.push(`${limit}/s ${untilMs - Date.now()} ms before its end`);
      if (isOver && limit !== before.perSecond) wrong.push(`${limit}/s ${askedMs - untilMs} ms after its end`);
    }
  }
  return wrong;
}

async function tryChange({ four, fleet }: Cast): Promise<[held: boolean, measured: string]> {
  const { status, body } = await steer(four, fleet, "POST", "/import", renderPolicies(1));
  return [status === 503 && body.code === "policy_store_unavailable", `${status} ${body.code}`];
}

/** On the one server that reaches the store again. */
async function changeMeanwhile({ postgres, four, fleet }: Cast): Promise<void> {
  await postgres.start();
  for (const limit of changed) {
    await waitUntil("a change succeeds", patienceMs, async () => {
      const { status } = await steer(four, fleet, "POST", "/import", renderPolicies(limit));
      return status < 300 || undefined;
    });
  }
}

function judgeLooks(notes: DayNotes<Key>, { limits, states, looks, unready }: Seen): void {
  notes.judge(
    "policies",
    limits.size === 1 && limits.has(before.perSecond) && unready === 0,
    `${[...limits].join(", ")}/s in ${looks} looks; not ready in ${unready}`,
  );
  notes.judge(
    "reported",
    states.every((one) => one.has("away") && one.has("expired")),
    states.map((one) => [...one].join(", then ")).join("; "),
  );
}

const readApplied = async (server: Sluice): Promise<number> =>
  (await scrape(server)).sum("sluice_store_generations_taken_up_total");

async function comeBack(notes: DayNotes<Key>, cast: Cast, mark: (name: string) => void, seen: Seen): Promise<void> {
  const servers = [...cast.asked, cast.three];
  const appliedBefore = await Promise.all(servers.map(readApplied));
  const healedMs = performance.now();
  cast.heal();
  mark("the store is back");
  await untilLimit(servers, newest);
  const tookMs = performance.now() - healedMs;
  // As long as two polls: a generation that is applied again would show.
  await sleep(2500);
  const applied = (await Promise.all(servers.map(readApplied))).map((count, i) => count - appliedBefore[i]!);
  const between = [...seen.limits].filter((limit) => limit !== before.perSecond && limit !== newest);
  notes.judge(
    "once",
    applied.every((count) => count === 1) && between.length === 0,
    `${applied.join(", ")} generations applied by the three; ${between.length} limits in between`,
  );
  notes.judge("soon", tookMs <= appliedWithinMs, `after ${seconds(tookMs)}`);
}

interface Course {
  readonly cast: Cast;
  readonly sinceMs: number;
  readonly beganMs: number;
  readonly marks: readonly { readonly x: number; readonly name: string }[];
}

async function judgeTraffic(notes: DayNotes<Key>, { sent }: PacedTraffic, course: Course): Promise<void> {
  const { cast, sinceMs, beganMs, marks } = course;
  const otherwise = sent.filter((one) => !isCounted(one)).length;
  notes.judge("answered", otherwise === 0, `${otherwise} of ${sent.length} were not`);
  // The limit grows at the end.
  const most = { ...before, perSecond: newest, burst: newest };
  const backMs = beganMs + 1000 * marks.at(-1)!.x;
  let beyond = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const own of bySubject(sent).values()) {
    const old = own.filter(({ settledMs }) => settledMs! < backMs);
    beyond = Math.max(beyond, beyondBound(old, before), beyondBound(own, most));
    const lastingMs = old.at(-1)!.startedMs - old[0]!.startedMs;
    const due = Math.min(old.length, before.burst + (before.perSecond * lastingMs) / 1000);
    least = Math.min(least, old.filter(isAdmitted).length / due);
  }
  notes.judge("bound", beyond === 0, `at most ${beyond} beyond it`);
  notes.judge("share", least >= 0.9, `at least ${percent(least)}`);
  const from = Math.floor(sinceMs / 60_000) * 60_000;
  // Minutes, because sums of an hour follow them later.
  const path = `/usage?policy=p&step=minute&from_ms=${from}`;
  const readHistory = async (): Promise<number> => {
    const { items } = await steerWell(cast.four, cast.fleet, "GET", path);
    return (items as readonly { readonly decided: number }[]).reduce((sum, { decided }) => sum + decided, 0);
  };
  const counted = await waitUntil("the history is complete", patienceMs / 3, async () => {
    const decided = await readHistory();
    return decided === sent.length ? decided : undefined;
  }).catch(readHistory);
  notes.judge("history", counted === sent.length, `${counted} of ${sent.length}`);
  const busy = bySubject(sent).get("busy")!;
  notes.plot({
    name: "store-lost",
    title: "Decisions while the policy store is lost: a subject beyond its limit",
    x: "seconds, each a minute of the hour",
    y: "checks a second",
    series: [
      { name: "asked", points: perSecond(busy, beganMs) },
      { name: "admitted", points: perSecond(busy.filter(isAdmitted), beganMs) },
    ],
    levels: [{ y: before.perSecond, name: `its limit, ${before.perSecond}/s` }],
    marks,
  });
}

export const storeLostDay: GameDay = gameDay(day);
