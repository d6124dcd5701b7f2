import { openPolicyStore, type RolloutRecord, type TallyRecord } from "@sluice/sql";
import type { ConsoleWorld } from "./start-console-world.ts";

const minuteMs = 60_000;
const shown = 45;

/**
 * A rollout in its second step, with three quarters of an hour of counts behind it: the old version denies one request of fifty, and
 * the new one about as many. It is paused, so that no node judges it by the traffic of this minute.
 */
export async function seedRollouts({ admin, store: url }: ConsoleWorld): Promise<void> {
  const { document, version } = await admin.policies.get("checkout");
  const next = { ...document, limits: [{ by: ["user"], windows: ["15/m"] }] };
  const steps = [10, 50, 100].map((percent) => ({ percent, hold_ms: 20 * minuteMs }));
  const options = {
    expected: version,
    rollout: { by: "user", steps, observe_for_ms: 0 },
    why: "Baskets are larger still",
  };
  const { policy } = await admin.policies.put("checkout", next, options);
  const id = policy.rollout!.id;
  await admin.rollouts.pause(id, { why: "The support team watches" });
  const store = await openPolicyStore({ url });
  try {
    const minuteNow = Math.floor(Date.now() / minuteMs);
    await store.note((note) => note.putTallies(talliesOf(id, minuteNow)));
    await store.change(async (change) => {
      const record = (await change.rollout(id))!;
      await change.putRollout({
        ...record,
        step: 1,
        figures: JSON.stringify(figuresOf(minuteNow)),
      } satisfies RolloutRecord);
      await change.nextGeneration();
    });
  } finally {
    await store.close();
  }
}

function talliesOf(rollout: string, minuteNow: number): readonly TallyRecord[] {
  return Array.from({ length: shown }, (_, ago) => minuteNow - ago - 1).flatMap((minute) => {
    const wave = Math.sin(minute * 1.7) + Math.sin(minute * 0.6);
    const of = (step: number, side: TallyRecord["side"], decided: number, rate: number): TallyRecord => {
      const denied = Math.max(0, Math.round(decided * (rate + wave * 0.003)));
      return { rollout, node: "history", minute, step, side, decided, denied };
    };
    const isNew = minute > minuteNow - 20;
    return [of(0, isNew ? "new" : "old", 420, isNew ? 0.021 : 0.019), of(2, "old", 380, 0.019)];
  });
}

function figuresOf(minuteNow: number): unknown {
  const total = {
    ...{ decided: 412, denied: 9, rate: 0.0218, baseline: 0.0192, baselineMinutes: 40, baselineDecided: 16_420 },
    ...{ others: 1.02, sigma: 0.0068, threshold: 0.0337 },
  };
  return {
    ...{ minute: minuteNow - 1, minutes: 1, verdict: "fine", looks: 18, strikes: 0, total, rings: [] },
    sentence:
      "In the last minute the new version denied 2.18 % of 412 requests; the same subjects were denied 1.92 % under the old version. That is within what chance explains.",
  };
}
