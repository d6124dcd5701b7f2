import { openPolicyStore, type UsageSum } from "@sluice/sql";
import { worldTenants } from "./world-policies.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** How many requests a policy decides in an ordinary minute, few enough for its limit, and which share it denies. */
interface Habit {
  readonly policy: string;
  readonly limit: string;
  readonly window: string;
  readonly perMinute: number;
  readonly deniedShare: number;
  /** Who asks most, the busiest first. Absent: the tenants in their order. */
  readonly tenants?: readonly string[];
}

const habits: readonly Habit[] = [
  {
    policy: "api",
    limit: "per-tenant",
    window: "2000/m",
    perMinute: 2_400,
    deniedShare: 0.012,
    tenants: ["hooli", "umbrella", "stark", "globex", "acme"],
  },
  { policy: "search", limit: "per-tenant", window: "60/m", perMinute: 60, deniedShare: 0.09 },
  { policy: "login", limit: "ip", window: "5/m", perMinute: 80, deniedShare: 0.22 },
  { policy: "webhooks", limit: "tenant,hook", window: "20/s burst 40", perMinute: 640, deniedShare: 0.004 },
  { policy: "checkout", limit: "user", window: "10/m", perMinute: 45, deniedShare: 0.01 },
];

/** How far back a history goes, and how many hours of it have every minute. */
export interface HistorySpan {
  readonly days: number;
  readonly minuteHours: number;
}

/**
 * Writes a history of usage into a policy store as nodes would have written it: minute by minute for the last hours, and before
 * that one minute for each hour with all that was decided in it. Then hours and days are added up.
 */
export async function seedHistory(url: string, { days, minuteHours }: HistorySpan, nowMs = Date.now()): Promise<void> {
  const store = await openPolicyStore({ url });
  const hourNow = nowMs - (nowMs % hourMs);
  let sequence = 0;
  const flush = (sums: readonly UsageSum[]): Promise<boolean> => {
    sequence += 1;
    return store.note((note) => note.addUsage({ node: "history", boot: "history", sequence, sums }));
  };
  try {
    for (let hour = 0; hour < days * 24; hour += 1) {
      const startMs = hourNow - hour * hourMs;
      const minutes = Array.from({ length: 60 }, (_, minute) => startMs + minute * minuteMs).filter(
        (ms) => ms + minuteMs <= nowMs,
      );
      await flush(hour < minuteHours ? minutes.flatMap((ms) => sumsOf(ms, 1)) : sumsOf(startMs, 60));
    }
    await store.note((note) => note.planUsage());
    while (await store.upkeep((note) => note.rollUpUsage()));
  } finally {
    await store.close();
  }
}

/** The same for the whole minutes since then, while which servers started. */
export async function continueHistory(url: string, sinceMs: number, nowMs = Date.now()): Promise<void> {
  const store = await openPolicyStore({ url });
  const first = sinceMs - (sinceMs % minuteMs);
  const count = Math.floor((nowMs - first) / minuteMs);
  const sums = Array.from({ length: count }, (_, minute) => sumsOf(first + minute * minuteMs, 1)).flat();
  try {
    await store.note((note) => note.addUsage({ node: "history", boot: "later", sequence: 1, sums }));
  } finally {
    await store.close();
  }
}

function sumsOf(startMs: number, minutes: number): readonly UsageSum[] {
  return habits.flatMap((habit, i) => {
    const decided = Math.round(habit.perMinute * minutes * busyness(startMs) * noise(startMs / minuteMs, i));
    const denied = Math.round(decided * habit.deniedShare * noise(startMs / minuteMs, i + 100));
    const total = sumFrom(habit, startMs, decided, denied);
    // Half of the traffic is from the first tenant of a policy, a quarter from the next one, and so on. The first is denied most.
    const names = habit.tenants ?? worldTenants.slice(0, 5).map(({ name }) => name);
    const tenants = names.map((name, place) => {
      const asked = Math.round(decided / 2 ** (place + 1));
      const refused = Math.min(asked, Math.round((denied * 3) / 4 ** (place + 1)));
      return { ...sumFrom(habit, startMs, asked, refused), dimension: "tenant", subject: name };
    });
    return [total, ...tenants.filter((sum) => sum.decided > 0)];
  });
}

function sumFrom({ policy, limit, window }: Habit, startMs: number, decided: number, denied: number): UsageSum {
  const allowed = decided - denied;
  return {
    policy,
    limit,
    dimension: "",
    subject: "",
    startMs,
    decided,
    allowed,
    denied,
    cost: allowed,
    degraded: 0,
    shadowDenied: 0,
    denials: denied === 0 ? [] : [{ reason: "over_limit", window, denied }],
  };
}

/** Quiet at night and at weekends. */
function busyness(atMs: number): number {
  const date = new Date(atMs);
  const day = 1 + 0.7 * Math.sin(((date.getUTCHours() + date.getUTCMinutes() / 60 - 8) / 24) * 2 * Math.PI);
  return day * ([0, 6].includes(date.getUTCDay()) ? 0.5 : 1);
}

/** 0.85 to 1.15, the same in every run. */
function noise(at: number, salt: number): number {
  const x = Math.sin(at * 12.9898 + salt * 78.233) * 43_758.5453;
  return 0.85 + 0.3 * (x - Math.floor(x));
}
