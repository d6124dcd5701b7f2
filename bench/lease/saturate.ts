import type { Contender } from "./drive.ts";
import type { Admissions } from "./judge-admissions.ts";

/** A phase of this length in which all nodes together request this multiple of the limits. */
export interface Phase {
  readonly forMs: number;
  readonly demand: number;
}

export interface Saturation {
  /** The start, by the clock of `nowUs`. */
  readonly startUs: number;
  readonly phases: readonly Phase[];
  /** The share of this node. */
  readonly share: number;
  /** The subjects, by number, with their limits per second. */
  readonly subjects: readonly { readonly number: number; readonly perSecond: number }[];
}

export interface Saturated {
  /** In the order of the subjects. */
  readonly admissions: readonly Admissions[];
  readonly checks: number;
}

/** Microseconds of the machine's own clock, which is the same in all its processes and never steps. */
export function nowUs(): number {
  return Number(process.hrtime.bigint()) / 1000;
}

/** The largest number of undecided checks; further ones are skipped. */
const mostWaiting = 2000;

/** Requests more, and at times less, than the limits allow, whatever the answers, and records the admissions. */
export async function saturate(contender: Contender, saturation: Saturation): Promise<Saturated> {
  const { startUs, phases, share, subjects } = saturation;
  const logs = subjects.map(() => ({ askedUs: [] as number[], answeredUs: [] as number[] }));
  const due = subjects.map(() => 0);
  let waiting = 0;
  let checks = 0;
  let failure: Error | undefined;

  const ask = (at: number): void => {
    const { askedUs, answeredUs } = logs[at]!;
    const startedUs = nowUs();
    waiting += 1;
    checks += 1;
    contender.ask(subjects[at]!.number).then(
      (answer) => {
        waiting -= 1;
        const verdict = contender.judge(answer);
        if (verdict === "undecided") failure ??= new Error("the counters were unavailable");
        if (verdict !== "allowed") return;
        askedUs.push(startedUs);
        answeredUs.push(nowUs());
      },
      (error: Error) => {
        waiting -= 1;
        failure ??= error;
      },
    );
  };

  let lastUs = startUs;
  while (failure === undefined) {
    const thisUs = nowUs();
    const phase = phaseAt(phases, (thisUs - startUs) / 1000);
    if (phase === undefined) break;
    if (thisUs > startUs) {
      subjects.forEach(({ perSecond }, at) => {
        due[at]! += (perSecond * phase.demand * share * (thisUs - lastUs)) / 1e6;
        for (; due[at]! >= 1; due[at]! -= 1) if (waiting < mostWaiting) ask(at);
      });
      lastUs = thisUs;
    }
    await pause();
  }
  while (waiting > 0 && failure === undefined) await pause();
  if (failure !== undefined) throw failure;
  return {
    admissions: logs.map(({ askedUs, answeredUs }) => ({
      askedUs: Float64Array.from(askedUs),
      answeredUs: Float64Array.from(answeredUs),
    })),
    checks,
  };
}

/** The current phase; before the start, the first. */
function phaseAt(phases: readonly Phase[], sinceMs: number): Phase | undefined {
  let endMs = 0;
  for (const phase of phases) {
    endMs += phase.forMs;
    if (sinceMs < endMs) return phase;
  }
  return undefined;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
