import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres, startServer, waitUntil } from "@sluice/test-servers";
import {
  beginRollout,
  fastRolloutsServer,
  type Rollout,
  readRollout,
  speed,
  users,
  versionsOn,
  whileAsked,
} from "../control-plane/rollout-drill.ts";
import { createFleet, type Fleet, steerWell } from "../control-plane/start-fleet.ts";
import { type Sluice, startProgram } from "../restart/start-sluice.ts";
import { type DayNotes, type GameDay, gameDay } from "./game-day.ts";
import { seconds } from "./render-quantity.ts";

const patienceMs = 180_000;
const sampleMs = 250;
/** The old version allows a million requests an hour; one of the new ones hardly any, the other nearly as many. */
const limits = { bad: 3, calm: 900_000 };
type Policy = keyof typeof limits;
const policies = Object.keys(limits) as readonly Policy[];

type Key = "answered" | "alike" | "rolledBack" | "restored" | "explained" | "finished" | "applied";

/** What a user of a policy was answered, since the beginning. */
interface Answered {
  readonly atMs: number;
  readonly policy: Policy;
  readonly allowed: boolean;
}

interface Ended {
  readonly state: string;
  readonly atMs: number;
}

const day: GameDay<Key> = {
  name: "rollout",
  title: "Rollout drill: a bad version and a calm one",
  done: () => [
    `Two servers share a PostgreSQL and a Valkey, and their rollouts pass time ${speed} times as fast: a minute is a second.`,
    `Two policies get a new version each, for half of ${users.length} users first and for all of them after four minutes.`,
    `The bad one lowers a limit of 1 000 000 an hour to ${limits.bad}; the calm one lowers it to ${limits.calm}, which no user reaches.`,
    "Under either version a tenth of the users is denied, because a list says so.",
    "All users send requests to both servers all the time.",
  ],
  promises: {
    answered: { text: "every check is answered by a server" },
    alike: { text: "while half of the users have a new version, both servers agree which" },
    rolledBack: { text: "the bad version is rolled back automatically, before it is given to more users" },
    restored: { text: "then every server decides by the old version for every user" },
    explained: { text: "the audit has the numbers that decided it" },
    finished: { text: "the calm version is finished automatically" },
    applied: { text: "then every server decides by the new version for every user" },
  },
  async play(notes) {
    const [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
    notes.opened(valkey);
    notes.opened(postgres);
    const time = [String(Date.now()), String(speed)];
    const fleet = notes.opened(
      await createFleet({ SLUICE_STORE_URL: postgres.url, SLUICE_REDIS_URL: valkey.url }, (env) =>
        startProgram(env, fastRolloutsServer, ...time),
      ),
    );
    await drill(notes, fleet, [await fleet.start("one"), await fleet.start("two")]);
  },
};

async function drill(notes: DayNotes<Key>, fleet: Fleet, nodes: readonly [Sluice, Sluice]): Promise<void> {
  const [one, two] = nodes;
  const beganMs = performance.now();
  for (const policy of policies) await beginRollout(fleet, one, policy, limits[policy]);
  const answered: Answered[] = [];
  const ended = new Map<Policy, Ended>();
  let disagreements = 0;
  let compared = 0;
  let failed = 0;
  const following = Promise.all(
    policies.map(async (policy) => {
      for (;;) {
        const { state, percent } = await readRollout(fleet, two, policy);
        if (state === "done" || state === "rolled_back") {
          ended.set(policy, { state, atMs: performance.now() });
          return;
        }
        if (performance.now() - beganMs > patienceMs) return;
        if (percent === 50) {
          const verdict = await compare(fleet, nodes, policy);
          compared += verdict === undefined ? 0 : 1;
          disagreements += verdict === false ? 1 : 0;
        }
        await sleep(sampleMs);
      }
    }),
  );
  const work = following.then(() => {});
  await whileAsked(
    policies,
    () => nodes,
    work,
    (policy, _, { allowed }) => {
      if (allowed === undefined) failed += 1;
      answered.push({ atMs: performance.now(), policy: policy as Policy, allowed });
    },
  );
  notes.judge("answered", failed === 0, `${failed} of ${answered.length} failed`);
  notes.judge(
    "alike",
    disagreements === 0 && compared > 0,
    `${disagreements} of ${compared} comparisons differed, each of ${users.length} users`,
  );
  await judgeEnds(notes, { fleet, nodes, ended, beganMs });
  plot(notes, answered, ended, beganMs);
}

/** Whether both nodes have the same users under the new version; undefined if the rollout went on meanwhile. */
async function compare(
  fleet: Fleet,
  [one, two]: readonly [Sluice, Sluice],
  policy: Policy,
): Promise<boolean | undefined> {
  const seen = await Promise.all([versionsOn(one, policy), versionsOn(two, policy)]);
  const { state, percent } = await readRollout(fleet, one, policy);
  // A node may still have to hear of a step; then it has all users, or none, under one version.
  const halves = seen.every((versions) => new Set(versions).size === 2);
  if (state !== "running" || percent !== 50 || !halves) return undefined;
  return seen[0].join() === seen[1].join();
}

interface Drilled {
  readonly fleet: Fleet;
  readonly nodes: readonly [Sluice, Sluice];
  readonly ended: ReadonlyMap<Policy, Ended>;
  readonly beganMs: number;
}

async function judgeEnds(notes: DayNotes<Key>, { fleet, nodes, ended, beganMs }: Drilled): Promise<void> {
  const [one] = nodes;
  const [bad, calm] = await Promise.all(policies.map((policy) => readRollout(fleet, one, policy)));
  const took = (policy: Policy): string => {
    const { state, atMs } = ended.get(policy) ?? { state: "not at its end", atMs: Number.POSITIVE_INFINITY };
    const minutes = ((atMs - beganMs) / 60_000) * speed;
    return `${state.replace("_", " ")}${Number.isFinite(minutes) ? ` after ${minutes.toFixed(1)} minutes of the rollout's time` : ""}`;
  };
  const isBack = ended.get("bad")?.state === "rolled_back";
  notes.judge("rolledBack", isBack && bad!.step === 0, `${took("bad")}, at step ${bad!.step + 1} of 2`);
  notes.judge("restored", ...(await untilUnder(nodes, "bad", 1)));
  notes.judge("explained", ...(await readReason(fleet, one, bad!)));
  notes.judge("finished", ended.get("calm")?.state === "done" && calm!.percent === 100, took("calm"));
  notes.judge("applied", ...(await untilUnder(nodes, "calm", 2)));
}

async function untilUnder(
  nodes: readonly Sluice[],
  policy: Policy,
  version: number,
): Promise<[held: boolean, measured: string]> {
  const sinceMs = performance.now();
  const isUnder = async (node: Sluice): Promise<boolean> =>
    (await versionsOn(node, policy)).every((one) => one === version);
  try {
    await waitUntil("every server decides by it", patienceMs, async () =>
      (await Promise.all(nodes.map(isUnder))).every((is) => is) ? true : undefined,
    );
    return [true, `within ${seconds(Math.ceil((performance.now() - sinceMs) / 10) * 10)} of the end`];
  } catch {
    return [false, "not all of them did"];
  }
}

async function readReason(fleet: Fleet, node: Sluice, { id }: Rollout): Promise<[held: boolean, measured: string]> {
  const { items } = await steerWell(node, fleet, "GET", `/audit?kind=rollout&target=${id}`);
  const entry = (items as readonly { readonly action: string; readonly actor: string; readonly why: string }[]).find(
    ({ action, actor }) => action === "rollout.rolled_back" && actor === "sluice",
  );
  return [/\d+\.\d\d %/.test(entry?.why ?? ""), entry === undefined ? "there is no record" : `“${entry.why}”`];
}

function plot(
  notes: DayNotes<Key>,
  answered: readonly Answered[],
  ended: ReadonlyMap<Policy, Ended>,
  beganMs: number,
): void {
  const minuteOf = (atMs: number): number => Math.floor(((atMs - beganMs) / 60_000) * speed);
  const series = policies.map((policy) => {
    const minutes = new Map<number, { denied: number; all: number }>();
    for (const one of answered.filter((each) => each.policy === policy)) {
      const minute = minutes.get(minuteOf(one.atMs)) ?? { denied: 0, all: 0 };
      minute.all += 1;
      minute.denied += one.allowed ? 0 : 1;
      minutes.set(minuteOf(one.atMs), minute);
    }
    return { name: policy, points: [...minutes].map(([at, { denied, all }]) => [at, (100 * denied) / all] as const) };
  });
  notes.plot({
    name: "rollout",
    title: "Denied requests of a policy with a bad new version, and of one with a calm one",
    x: "minutes of the rollouts' time",
    y: "% of requests",
    series,
    marks: [...ended].map(([policy, { state, atMs }]) => ({
      x: minuteOf(atMs),
      name: `${policy}: ${state.replace("_", " ")}`,
    })),
  });
}

export const rolloutDay: GameDay = gameDay(day);
