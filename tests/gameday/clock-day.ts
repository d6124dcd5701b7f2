import { globSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startServer, waitUntil } from "@sluice/test-servers";
import { decide, steerWell } from "../control-plane/start-fleet.ts";
import { createDraw } from "../leases/play-leases.ts";
import type { Sluice } from "../restart/start-sluice.ts";
import { type DayNotes, type GameDay, gameDay, type PlayOptions } from "./game-day.ts";
import { beyondBound, limitedThreeWays } from "./judge-subjects.ts";
import { type OpenServers, openServers } from "./open-servers.ts";
import { bySubject, PacedTraffic, type Sent } from "./paced-traffic.ts";
import { percent, seconds } from "./render-quantity.ts";
import { scrape } from "./scrape.ts";

const hourMs = 3_600_000;
/** Where the clock of the one server is put, in this order. */
const steps = [1, -1, 0].map((hours) => hours * hourMs);
const patienceMs = 60_000;
/** Far longer than any server takes: what is not answered in time is then not the machine's doing. */
const deadline = "20s";
const reportedWithinMs = 1000;
const switchMs = ({ form }: PlayOptions): number => (form === "full" ? 20_000 : 4000);
const holdMs = ({ form }: PlayOptions): number => (form === "full" ? 15_000 : 1200);

type Key = "answered" | "counted" | "bound" | "share" | "reported" | "others" | "switch";

const day: GameDay<Key> = {
  name: "clock",
  title: "A clock is stepped",
  done: (options) => [
    "Two servers share one Valkey, and limit the same subjects: by GCRA, by a fixed window, and by leases.",
    `Under traffic the wall clock of one of them is put ${steps.map(renderStep).join(", then ")} with libfaketime,`,
    `and stays there for ${seconds(holdMs(options))} each time.`,
    `While it is an hour ahead, an operator turns the kill switch on there for ${seconds(switchMs(options))},`,
    "and the clock is put an hour behind meanwhile.",
  ],
  promises: {
    answered: { text: "every check is answered by a server" },
    counted: { text: "no check is answered without counters" },
    bound: { text: "both servers together admit no more than each limit, whatever the clock of one says" },
    share: { text: "every subject gets at least 90 % of its limit all along", timed: true },
    reported: { text: "the server reports in `/metrics` how far its clock is off" },
    others: { text: "the other server reports nothing" },
    switch: { text: "the kill switch denies everything on that server until its time is over, and then no longer" },
  },
  async play(notes, options) {
    const valkey = notes.opened(await startServer({ flavor: "valkey" }));
    const fleet = notes.opened(
      await openServers(2, {
        policies: { default: "none", policies: limitedThreeWays.policies },
        redis: valkey.url,
        deadline,
        env: (index, folder) => ({
          ...(index === 0 ? fakeTime(folder) : {}),
          SLUICE_STORE_URL: `sqlite:${join(folder, `store-${index}.db`)}`,
          SLUICE_ADMIN_TOKEN_FILE: join(folder, index === 0 ? "admin-token" : "other-token"),
        }),
      }),
    );
    await run(notes, options, fleet);
  },
};

function renderStep(ms: number): string {
  if (ms === 0) return "back to the right time";
  return `${Math.abs(ms) / hourMs} hour ${ms > 0 ? "ahead" : "behind"}`;
}

/** Steps the wall clock alone, as an administrator does: timers and the monotonic clock go on. */
function fakeTime(folder: string): Readonly<Record<string, string>> {
  const [library] = globSync("/usr/lib{,64,/*}/faketime/libfaketime.so.1");
  if (library === undefined) throw new Error("libfaketime is missing; install Debian's package faketime");
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: join(folder, "clock"),
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

const stepClock = ({ folder }: OpenServers, ms: number): Promise<void> =>
  writeFile(join(folder, "clock"), `${ms < 0 ? "-" : "+"}${Math.abs(ms) / 1000}s\n`);

/** By how much a server says that the clock of its Valkey is ahead of its own. */
const readAheadMs = async (server: Sluice): Promise<number> =>
  1000 * (await scrape(server)).sum("sluice_redis_clock_ahead_seconds");

async function run(notes: DayNotes<Key>, options: PlayOptions, fleet: OpenServers): Promise<void> {
  const [stepped, other] = fleet.servers as [Sluice, Sluice];
  const traffic = new PacedTraffic(fleet.limiters, (user) => ({ dimensions: { user } }), createDraw(3));
  const over = new AbortController();
  const running = traffic.run(() => limitedThreeWays.rates, Number.POSITIVE_INFINITY, over.signal);
  const beganMs = performance.now();
  const marks: { x: number; name: string }[] = [];
  const reported: number[] = [];
  let othersMs = 0;
  try {
    await sleep(1000);
    for (const step of steps) {
      await stepClock(fleet, step);
      marks.push({ x: (performance.now() - beganMs) / 1000, name: renderStep(step) });
      reported.push(
        await waitUntil("the server reports its clock", patienceMs, async () => {
          const aheadMs = await readAheadMs(stepped);
          return Math.abs(aheadMs + step) < reportedWithinMs ? aheadMs : undefined;
        }).catch(() => readAheadMs(stepped)),
      );
      othersMs = Math.max(othersMs, Math.abs(await readAheadMs(other)));
      await sleep(holdMs(options));
    }
  } finally {
    over.abort();
    await running;
  }
  const lasting = performance.now() - beganMs;
  judgeTraffic(notes, traffic.sent, lasting);
  const isReported = reported.every((aheadMs, i) => Math.abs(aheadMs + steps[i]!) < reportedWithinMs);
  notes.judge(
    "reported",
    isReported,
    `${reported.map((ms) => seconds(Math.round(ms))).join(", ")} (the Valkey's clock against its own)`,
  );
  notes.judge("others", othersMs < reportedWithinMs, `at most ${seconds(Math.round(othersMs))}`);
  await killSwitch(notes, options, fleet, stepped);
}

function judgeTraffic(notes: DayNotes<Key>, sent: readonly Sent[], lastingMs: number): void {
  const failed = sent.filter(({ error }) => error !== undefined).length;
  const degraded = sent.filter((one) => one.degraded !== undefined);
  notes.judge("answered", failed === 0, `${failed} of ${sent.length} failed`);
  notes.judge(
    "counted",
    degraded.length === 0,
    `${degraded.length} of ${sent.length} were${degraded[0] === undefined ? "" : ` (${degraded[0].degraded})`}`,
  );
  const beyond: string[] = [];
  let least = Number.POSITIVE_INFINITY;
  for (const [subject, own] of bySubject(sent)) {
    const limit = limitedThreeWays.subjects[subject]!;
    const over = beyondBound(own, limit);
    if (over > 0) beyond.push(`${subject} ${over}`);
    least = Math.min(least, own.filter(({ allowed }) => allowed).length / ((limit.perSecond * lastingMs) / 1000));
  }
  notes.judge(
    "bound",
    beyond.length === 0,
    beyond.length === 0 ? "none was exceeded" : `beyond it: ${beyond.join(", ")}`,
  );
  notes.judge("share", least >= 0.9, `at least ${percent(least)}`);
}

async function killSwitch(
  notes: DayNotes<Key>,
  options: PlayOptions,
  fleet: OpenServers,
  stepped: Sluice,
): Promise<void> {
  const forMs = switchMs(options);
  await stepClock(fleet, hourMs);
  const askedMs = performance.now();
  await steerWell(stepped, fleet, "PUT", "/kill-switch", { mode: "closed", for_ms: forMs, why: "a drill" });
  await waitUntil("the kill switch denies", patienceMs, async () => ((await isAllowed(stepped)) ? undefined : true));
  await stepClock(fleet, -hourMs);
  let early = 0;
  let answers = 0;
  let endedMs = Number.POSITIVE_INFINITY;
  // Twice its time: a switch that goes by the wrong clock ends at once, or an hour late.
  while (performance.now() - askedMs < 2 * forMs + patienceMs / 4) {
    const allowed = await isAllowed(stepped);
    const answeredMs = performance.now() - askedMs;
    answers += 1;
    if (allowed && answeredMs < forMs) early += 1;
    if (allowed && answeredMs >= forMs) {
      endedMs = answeredMs;
      break;
    }
    await sleep(20);
  }
  notes.judge(
    "switch",
    early === 0 && Number.isFinite(endedMs),
    `${early} of ${answers} were allowed too early, and it ended after ${seconds(endedMs)}`,
  );
}

const isAllowed = async (server: Sluice): Promise<boolean> =>
  (await decide(server, "elsewhere", "anyone")).allowed === true;

export const clockDay: GameDay = gameDay(day);
