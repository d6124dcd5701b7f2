import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileSource, readBytes } from "@sluice/simulate/logs";
import { startServer } from "@sluice/test-servers";
import type { CheckRequest } from "sluice";
import { createDraw } from "../leases/play-leases.ts";
import { main } from "../restart/start-sluice.ts";
import { type DayNotes, type GameDay, gameDay, type PlayOptions } from "./game-day.ts";
import { beyondBound, limitOf, shareOfExact } from "./judge-subjects.ts";
import { type OpenServers, openServers } from "./open-servers.ts";
import { bySubject, isAdmitted, PacedTraffic, perSecond, type Rates, type Sent } from "./paced-traffic.ts";
import { percent, seconds } from "./render-quantity.ts";

const run = promisify(execFile);
const nodes = 3;
const limit = limitOf(1000);
const leastShare = 0.97;
const burstEveryMs = 3000;
const burstMs = 1000;

interface Shape {
  readonly name: string;
  readonly what: string;
  readonly rates: Rates;
}

const even = Array.from({ length: 3 }, (_, i) => [`uniform ${i}`, 1200] as const);
const skewed = Array.from({ length: 8 }, (_, i) => [`Zipf ${i}`, 1500 / (i + 1)] as const);

const shapes: readonly Shape[] = [
  { name: "uniform", what: "three subjects, each 1.2 times its limit", rates: () => even },
  {
    name: "Zipf",
    what: "eight subjects, the first with 1.5 times its limit, the next with a half, a third, …",
    rates: () => skewed,
  },
  {
    name: "bursty",
    what: "nothing for two seconds, then three times the limit for one",
    rates: (elapsedMs) => [["bursty 0", elapsedMs % burstEveryMs >= burstEveryMs - burstMs ? 3000 : 0]],
  },
];

const shapeMs = ({ form }: PlayOptions): number => (form === "full" ? 20_000 : 3000);

type Key = "answered" | "bound" | "limits" | "recorded" | "replayed" | "replayBound";

const day: GameDay<Key> = {
  name: "traffic-shapes",
  title: "Traffic shapes: uniform, Zipf, bursty, and a replay of them",
  done: (options) => [
    "Three servers at default settings share one Valkey, and limit each subject to 1000/s.",
    `Each shape lasts ${seconds(shapeMs(options))}: ${shapes.map(({ name, what }) => `${name} (${what})`).join("; ")}.`,
    "The servers record it (`--record`), and `sluice replay` sends the recordings to another server with empty counters,",
    "which records what it decides.",
  ],
  promises: {
    answered: { text: "every check is answered by a server" },
    bound: { text: "no subject gets more than burst + rate × time + 1 % of its limit, whatever the shape" },
    limits: { text: "every subject gets at least 97 % of what one counter would have admitted", timed: true },
    recorded: { text: "the recordings hold every check" },
    replayed: { text: "`sluice replay` sends all of them, and none fails" },
    replayBound: { text: "replayed, no subject gets more than burst + rate × time + 1 % of its limit either" },
  },
  async play(notes, options) {
    const valkey = notes.opened(await startServer({ flavor: "valkey" }));
    const fleet = notes.opened(await openRecording(nodes, valkey.url));
    const sent: Sent[] = [];
    for (const shape of shapes) sent.push(...(await drive(notes, fleet, shape, shapeMs(options))));
    judgeShapes(notes, sent);
    await Promise.all(fleet.limiters.map((one) => one.close()));
    await Promise.all(fleet.servers.map((one) => one.stop()));
    await replay(
      notes,
      fleet.servers.map((_, i) => recordingOf(fleet.folder, i)),
      sent,
    );
  },
};

const recordingOf = (folder: string, index: number): string => join(folder, `requests-${index}.rec`);

function openRecording(count: number, redis: string): Promise<OpenServers> {
  const policies = [{ id: "api", limits: [{ by: ["user"], windows: [`${limit.perSecond}/s`] }], on_failure: "open" }];
  return openServers(count, {
    policies: { default: "none", policies },
    redis,
    env: (index, folder) => ({ SLUICE_RECORD: recordingOf(folder, index) }),
  });
}

async function drive(notes: DayNotes<Key>, fleet: OpenServers, shape: Shape, forMs: number): Promise<readonly Sent[]> {
  const createRequest = (user: string): CheckRequest => ({ dimensions: { user } });
  const traffic = new PacedTraffic(fleet.limiters, createRequest, createDraw(7));
  const beganMs = performance.now();
  await traffic.run(shape.rates, forMs);
  if (shape.name === "bursty") {
    notes.plot({
      name: "traffic-shapes-bursty",
      title: "Bursts of three times the limit: asked and admitted",
      x: "seconds",
      y: "checks a second",
      series: [
        { name: "asked", points: perSecond(traffic.sent, beganMs) },
        { name: "admitted", points: perSecond(traffic.sent.filter(isAdmitted), beganMs) },
      ],
      levels: [{ y: limit.perSecond + limit.burst, name: "burst and one second" }],
    });
  }
  return traffic.sent;
}

function judgeShapes(notes: DayNotes<Key>, sent: readonly Sent[]): void {
  const failed = sent.filter(({ error }) => error !== undefined).length;
  notes.judge("answered", failed === 0, `${failed} of ${sent.length} failed`);
  const beyond: string[] = [];
  let least: readonly [share: number, subject: string] = [Number.POSITIVE_INFINITY, ""];
  for (const [subject, own] of bySubject(sent)) {
    const over = beyondBound(own, limit);
    if (over > 0) beyond.push(`${subject} ${over}`);
    const share = shareOfExact(own, limit);
    if (share < least[0]) least = [share, subject];
  }
  notes.judge("bound", beyond.length === 0, beyond.length === 0 ? "none did" : `beyond it: ${beyond.join(", ")}`);
  notes.judge("limits", least[0] >= leastShare, `at least ${percent(least[0])} (${least[1]})`);
  const open = sent.filter(({ degraded }) => degraded !== undefined).length;
  notes.fact(`${sent.length} checks, of which ${open} were answered without counters`, "timed");
}

interface Played {
  readonly ended: string;
  readonly sent: number;
  readonly failed: number;
  readonly allowed: number;
  readonly compared: number;
  readonly agreed: number;
}

async function replay(notes: DayNotes<Key>, recordings: readonly string[], sent: readonly Sent[]): Promise<void> {
  const counts = await Promise.all(recordings.map(async (one) => (await readRecorded(one)).length));
  const recorded = counts.reduce((sum, count) => sum + count, 0);
  notes.judge("recorded", recorded === sent.length, `${recorded} of ${sent.length}`);
  const valkey = notes.opened(await startServer({ flavor: "valkey" }));
  const fleet = notes.opened(await openRecording(1, valkey.url));
  const [server] = fleet.servers;
  const { stdout } = await run(process.execPath, [
    ...["-C", "source", main, "replay", ...recordings],
    ...["--server", server!.http, "--speed", "1x", "--json"],
  ]);
  const played = JSON.parse(stdout) as Played;
  notes.judge(
    "replayed",
    played.ended === "all sent" && played.sent === recorded && played.failed === 0,
    `${played.sent} of ${recorded} sent, ${played.failed} failed`,
  );
  notes.fact(`${played.agreed} of ${played.compared} replayed checks were decided as recorded`, "timed");
  await server!.stop();
  const beyond: string[] = [];
  for (const [subject, own] of bySubject(await readRecorded(recordingOf(fleet.folder, 0)))) {
    const over = beyondBound(own, limit);
    if (over > 0) beyond.push(`${subject} ${over}`);
  }
  notes.judge("replayBound", beyond.length === 0, beyond.length === 0 ? "none did" : `beyond it: ${beyond.join(", ")}`);
}

/** The decisions of a recording, as if they had been sent when they were made. */
async function readRecorded(path: string): Promise<readonly Sent[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of readBytes(await fileSource(path), () => {})) chunks.push(Buffer.from(chunk));
  const lines = Buffer.concat(chunks).toString().trim().split("\n");
  return lines.flatMap((line): readonly Sent[] => {
    const { d, u, t, a, r } = JSON.parse(line) as RecordedLine;
    if (d === undefined) return [];
    const atMs = t ?? u! / 1000;
    const degraded = r === "degraded" ? "storage_unavailable" : undefined;
    return [{ subject: d.user, startedMs: atMs, settledMs: atMs, allowed: a, degraded, error: undefined }];
  });
}

interface RecordedLine {
  readonly d?: { readonly user: string };
  readonly u?: number;
  readonly t?: number;
  readonly a: boolean;
  readonly r?: string;
}

export const trafficShapesDay: GameDay = gameDay(day);
