import { setTimeout as sleep } from "node:timers/promises";
import { startServer } from "@sluice/test-servers";
import type { CheckRequest, DegradedReason } from "sluice";
import { createDraw } from "../leases/play-leases.ts";
import { type DayNotes, type GameDay, gameDay, type PlayOptions } from "./game-day.ts";
import { beyondBound, limitOf, type SubjectLimit, shareOfExact } from "./judge-subjects.ts";
import { type OpenServers, openServers } from "./open-servers.ts";
import { bySubject, isAdmitted, PacedTraffic, perSecond, type Rates, type Sent } from "./paced-traffic.ts";
import { percent, seconds } from "./render-quantity.ts";
import { scrapeAll } from "./scrape.ts";

const nodes = 3;
const convergeMs = 5000;
const localShare = 0.9;
const leastShare = 0.97;

interface Course {
  readonly calmMs: number;
  readonly rampMs: number;
  readonly afterMs: number;
  /** Of the whale, before its rate doubles. */
  readonly fromPerSecond: number;
}

const full: Course = { calmMs: 20_000, rampMs: 30_000, afterMs: 20_000, fromPerSecond: 1200 };
const bounded: Course = { calmMs: 2000, rampMs: 1500, afterMs: 2500, fromPerSecond: 800 };
const courseFor = ({ form }: PlayOptions): Course => (form === "full" ? full : bounded);

/** Far above what the whale asks for, and between its first and its last rate. */
const wide = limitOf(50_000);
const narrowFor = ({ fromPerSecond }: Course): SubjectLimit => limitOf(Math.round(fromPerSecond * 1.5));
const tenantLimit = limitOf(40);
/** Every fourth tenant asks for more than its limit. */
const tenants = Array.from({ length: 12 }, (_, i) => ({ name: `tenant ${i}`, perSecond: i % 4 === 3 ? 60 : 20 }));

const createPolicy = (id: string, { perSecond: limit }: SubjectLimit): object => ({
  id,
  match: { endpoint: `/${id}` },
  limits: [{ by: ["tenant"], windows: [`${limit}/s`] }],
  on_failure: "open",
});

interface Sample {
  readonly atMs: number;
  /** Decisions by tokens that a server held. */
  readonly local: number;
  readonly fetches: Readonly<Record<"granted" | "refused" | "failed", number>>;
}

interface Played {
  readonly beganMs: number;
  readonly sent: readonly Sent[];
  readonly samples: readonly Sample[];
}

type Key = "answered" | "leased" | "converged" | "bound" | "whole" | "starved" | "limits";

const day: GameDay<Key> = {
  name: "whale",
  title: "The whale: a tenant doubles its rate",
  done: (options) => {
    const { rampMs, fromPerSecond } = courseFor(options);
    return [
      `Three servers at default settings share one Valkey. A whale doubles its rate within ${seconds(rampMs)},`,
      `from ${fromPerSecond} to ${2 * fromPerSecond} checks a second, at any of them; first within its limit (${wide.perSecond}/s),`,
      `then to more than its limit (${narrowFor(courseFor(options)).perSecond}/s).`,
      `Twelve tenants ask next to it, each limited to ${tenantLimit.perSecond}/s, and a quarter of them for more than that.`,
    ];
  },
  promises: {
    answered: { text: "every check is answered by a server" },
    leased: { text: "the servers decide about the whale by leases" },
    converged: {
      text: "5 s after the rate has doubled, at least 90 % of the whale's checks are decided by leases, and stay so",
      timed: true,
    },
    bound: { text: "no subject gets more than burst + rate × time + 1 % of its limit" },
    whole: { text: "within its limit the whale is denied nothing" },
    starved: { text: "no tenant within its limit is denied anything" },
    limits: {
      text: "a subject that asks for more gets at least 97 % of what one counter would have admitted",
      timed: true,
    },
  },
  async play(notes, options) {
    const course = courseFor(options);
    const valkey = notes.opened(await startServer({ flavor: "valkey" }));
    const policies = [
      createPolicy("within", wide),
      createPolicy("beyond", narrowFor(course)),
      createPolicy("tenants", tenantLimit),
    ];
    const fleet = notes.opened(
      await openServers(nodes, { policies: { default: "none", policies }, redis: valkey.url }),
    );
    const within = await drive(course, fleet, "within");
    const beyond = await drive(course, fleet, "beyond");
    judge(notes, course, within, beyond);
  },
};

/** The same traffic, with its own whale and tenants. */
async function drive(course: Course, fleet: OpenServers, run: "within" | "beyond"): Promise<Played> {
  const createRequest = (subject: string): CheckRequest => ({
    dimensions: { tenant: `${subject} ${run}`, endpoint: subject === "whale" ? `/${run}` : "/tenants" },
  });
  const traffic = new PacedTraffic(fleet.limiters, createRequest, createDraw(11));
  const over = new AbortController();
  const samples: Sample[] = [];
  const beganMs = performance.now();
  const sampling = sample(fleet, samples, over.signal);
  await traffic.run(ratesFor(course), course.calmMs + course.rampMs + course.afterMs);
  over.abort();
  await sampling;
  return { beganMs, sent: traffic.sent, samples };
}

function ratesFor({ calmMs, rampMs, fromPerSecond }: Course): Rates {
  const others = tenants.map(({ name, perSecond: rate }) => [name, rate] as const);
  return (elapsedMs) => {
    const grown = Math.min(Math.max((elapsedMs - calmMs) / rampMs, 0), 1);
    return [["whale", fromPerSecond * (1 + grown)], ...others];
  };
}

async function sample({ servers }: OpenServers, samples: Sample[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const page = await scrapeAll(servers);
    samples.push({
      atMs: performance.now(),
      local: page.sum("sluice_lease_decisions_total", { by: "lease" }),
      fetches: {
        granted: page.sum("sluice_lease_fetches_total", { outcome: "granted" }),
        refused: page.sum("sluice_lease_fetches_total", { outcome: "refused" }),
        failed: page.sum("sluice_lease_fetches_total", { outcome: "failed" }),
      },
    });
    await sleep(1000, undefined, { signal }).catch(() => {});
  }
}

/** The share of the whale's checks that leases decided, from each sample to the next, by the end of the stretch. */
function localShares({ beganMs, sent, samples }: Played): readonly (readonly [number, number])[] {
  const asked = sent.filter(({ subject }) => subject === "whale").map(({ startedMs }) => startedMs);
  return samples.slice(1).flatMap((one, i) => {
    const before = samples[i]!;
    const count = asked.filter((atMs) => atMs >= before.atMs && atMs < one.atMs).length;
    // A stretch that is cut off at the end says little.
    if (one.atMs - before.atMs < 500 || count === 0) return [];
    return [[(one.atMs - beganMs) / 1000, Math.min(1, (one.local - before.local) / count)] as const];
  });
}

function judge(notes: DayNotes<Key>, course: Course, within: Played, beyond: Played): void {
  const narrow = narrowFor(course);
  const all = [...within.sent, ...beyond.sent];
  const failed = all.filter(({ error }) => error !== undefined).length;
  notes.judge("answered", failed === 0, `${failed} of ${all.length} failed`);
  const shares = localShares(within);
  const local = within.samples.at(-1)!.local - within.samples[0]!.local;
  notes.judge("leased", local > 0, `${local} of its checks within its limit`);
  const doubledMs = course.calmMs + course.rampMs;
  const lastLow = shares.findLast(([, share]) => share < localShare)?.[0] ?? 0;
  const afterMs = Math.max(0, lastLow * 1000 - doubledMs);
  const last = percent(shares.at(-1)?.[1] ?? 0);
  notes.judge(
    "converged",
    afterMs <= convergeMs,
    `${afterMs === 0 ? "they were all along" : `after ${seconds(afterMs)}`}, in the end ${last}`,
  );
  judgeBounds(notes, narrow, within, beyond);
  const whale = bySubject(within.sent).get("whale")!;
  const deniedWhale = whale.filter(({ allowed }) => !allowed).length;
  notes.judge("whole", deniedWhale === 0, `${deniedWhale} of ${whale.length} were denied`);
  const count = (reason: DegradedReason): number => all.filter(({ degraded }) => degraded === reason).length;
  notes.fact(
    `${all.length} checks, of which ${count("storage_timeout")} were not answered by counters in time, ` +
      `and ${count("storage_unavailable")} did not ask them because earlier ones were not`,
    "timed",
  );
  const { granted, refused, failed: unanswered } = beyond.samples.at(-1)!.fetches;
  notes.fact(`requests for tokens: ${granted} granted, ${refused} refused, ${unanswered} without an answer`, "timed");
  plot(notes, course, narrow, beyond, shares);
}

function judgeBounds(notes: DayNotes<Key>, narrow: SubjectLimit, within: Played, beyond: Played): void {
  let worst = 0;
  let denied = 0;
  let asked = 0;
  let least: readonly [share: number, subject: string] = [Number.POSITIVE_INFINITY, ""];
  for (const [played, whale] of [
    [within, wide],
    [beyond, narrow],
  ] as const) {
    for (const [subject, sent] of bySubject(played.sent)) {
      const limit = subject === "whale" ? whale : tenantLimit;
      worst = Math.max(worst, beyondBound(sent, limit));
      const rate = tenants.find(({ name }) => name === subject)?.perSecond;
      if (rate !== undefined && rate <= limit.perSecond) {
        asked += sent.length;
        denied += sent.filter(({ allowed }) => !allowed).length;
      } else if (rate !== undefined || played === beyond) {
        const share = shareOfExact(sent, limit);
        if (share < least[0]) least = [share, subject];
      }
    }
  }
  notes.judge("bound", worst === 0, `at most ${worst} beyond it`);
  notes.judge("starved", denied === 0, `${denied} of ${asked} were denied`);
  notes.judge("limits", least[0] >= leastShare, `at least ${percent(least[0])} (${least[1]})`);
}

function plot(
  notes: DayNotes<Key>,
  { calmMs, rampMs }: Course,
  narrow: SubjectLimit,
  beyond: Played,
  shares: readonly (readonly [number, number])[],
): void {
  const marks = [
    { x: calmMs / 1000, name: "the rate grows" },
    { x: (calmMs + rampMs) / 1000, name: "it has doubled" },
  ];
  notes.plot({
    name: "whale-leases",
    title: "The whale within its limit: decided by leases",
    x: "seconds",
    y: "% of the whale's checks",
    series: [{ name: "by leases", points: shares.map(([x, share]) => [x, 100 * share]) }],
    marks,
  });
  const whale = bySubject(beyond.sent).get("whale")!;
  notes.plot({
    name: "whale-beyond",
    title: "The whale beyond its limit: asked and admitted",
    x: "seconds",
    y: "checks a second",
    series: [
      { name: "asked", points: perSecond(whale, beyond.beganMs) },
      { name: "admitted", points: perSecond(whale.filter(isAdmitted), beyond.beganMs) },
    ],
    levels: [{ y: narrow.perSecond, name: `its limit, ${narrow.perSecond}/s` }],
    marks,
  });
}

export const whaleDay: GameDay = gameDay(day);
