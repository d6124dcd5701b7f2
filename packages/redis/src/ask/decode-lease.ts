import { outcomesFromPlan } from "sluice/store";
import { answers, decodeSteps, headLength, numbersPerWindow } from "./decode-reply.ts";
import { none, type Question, type Reply } from "./question.ts";

type Five = [number, number, number, number, number];

/**
 * `lease`: per ask an answer, the units granted, their epoch, the units unspent and forgotten, then five numbers per
 * window.
 */
export function decodeLeases(questions: readonly Question[], reply: readonly number[]): readonly Reply[] {
  const nowMs = reply[0]! / 1000;
  let at = headLength;
  return questions.map(({ limits }): Reply => {
    const [answer, granted, epoch, unspent, forgotten] = reply.slice(at, at + 5) as Five;
    const begin = at + 5;
    at = begin;
    for (const { windows } of limits) at += numbersPerWindow * windows.length;
    if (answer === answers.outside) return { kind: "outside" };
    // A grant is described as a take of that cost, and no grant as a peek with a cost of 1.
    const costs = limits.map((limit) => ({ ...limit, cost: Math.max(granted, 1), group: 0 }));
    const plan = decodeSteps(costs, reply, begin, nowMs, false);
    return {
      kind: "answer",
      answer: {
        taken: granted > 0,
        atMs: nowMs,
        outcomes: outcomesFromPlan(costs, plan, granted > 0),
        plan,
        receipt: undefined,
        replayed: false,
        numbers: none,
        grant: { granted, epoch, unspent, forgotten },
      },
    };
  });
}
