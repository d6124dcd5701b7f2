import { fileURLToPath } from "node:url";
import type { Sluice } from "../restart/start-sluice.ts";
import { type Fleet, steerWell } from "./start-fleet.ts";

export const fastRolloutsServer: string = fileURLToPath(new URL("fast-rollouts-server.ts", import.meta.url));
/** A minute of a rollout is a second. */
export const speed = 60;
export const minuteMs = 60_000;

export const users: readonly string[] = Array.from({ length: 40 }, (_, i) => `user-${i}`);

/** One of ten is denied under every version. */
export const createDocument = (id: string, limit: number): Record<string, unknown> => ({
  id,
  match: { endpoint: `/${id}` },
  deny: { user: users.filter((_, i) => i % 10 === 0) },
  limits: [{ by: ["user"], algorithm: "fixed_window", windows: [`${limit}/h`] }],
  on_failure: "open",
});

export interface Rollout {
  readonly id: string;
  readonly step: number;
  readonly waits_for?: { readonly code: string };
  readonly state: string;
  readonly percent: number;
  readonly reason: string;
  readonly figures?: { readonly verdict: string; readonly sentence: string; readonly strikes: number };
}

/** Half of the users for four minutes, then all of them. */
export const rollout = {
  by: "user",
  observe_for_ms: 7 * minuteMs,
  steps: [50, 100].map((percent) => ({ percent, hold_ms: 4 * minuteMs })),
};

export async function beginRollout(fleet: Fleet, on: Sluice, policy: string, limit: number): Promise<void> {
  await steerWell(on, fleet, "PUT", `/policies/${policy}`, { document: createDocument(policy, 1_000_000) });
  await steerWell(on, fleet, "PUT", `/policies/${policy}`, {
    document: createDocument(policy, limit),
    expected_version: 1,
    rollout,
  });
}

export interface DrillAnswer {
  readonly allowed: boolean;
  readonly version?: number;
}

export async function check({ http }: Sluice, policy: string, user: string, preview: boolean): Promise<DrillAnswer> {
  const response = await fetch(`${http}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ dimensions: { user, endpoint: `/${policy}` }, preview }),
  });
  return (await response.json()) as DrillAnswer;
}

/** Every user checks every policy over and over, on changing nodes, until `work` is done. */
export async function whileAsked(
  policies: readonly string[],
  asked: () => readonly Sluice[],
  work: Promise<void>,
  onAnswer: (policy: string, user: string, answer: DrillAnswer) => void = () => {},
): Promise<void> {
  let over = false;
  const done = work.finally(() => {
    over = true;
  });
  for (let round = 0; !over; round++)
    for (const policy of policies) {
      const open = asked();
      await Promise.all(
        users.map(async (user, i) => {
          const node = open[(i + round) % open.length]!;
          await check(node, policy, user, false).then(
            (answer) => onAnswer(policy, user, answer),
            (error: unknown) => {
              // A node that was just killed does not answer.
              if (asked().includes(node)) throw error;
            },
          );
        }),
      );
    }
  await done;
}

export async function readRollout(fleet: Fleet, on: Sluice, policy: string): Promise<Rollout> {
  const { items } = await steerWell(on, fleet, "GET", `/rollouts?policy=${policy}`);
  return (items as Rollout[])[0]!;
}

export async function versionsOn(node: Sluice, policy: string): Promise<readonly (number | undefined)[]> {
  return Promise.all(users.map(async (user) => (await check(node, policy, user, true)).version));
}
