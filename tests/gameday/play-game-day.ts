import type { DayNotes, DayResult, GameDay, PlayOptions, Verdict } from "./game-day.ts";

/**
 * Plays a day to its end, closes what it opened, and returns a verdict on each of its promises. `onBegin` gets a function
 * that closes everything at once, for a process that must end before the day does.
 */
export async function playGameDay(
  day: GameDay,
  options: PlayOptions,
  onBegin: (closeAll: () => Promise<void>) => void = () => {},
): Promise<DayResult> {
  const beganMs = performance.now();
  const verdicts = new Map<string, Verdict>();
  const facts: { text: string; timed: boolean }[] = [];
  const plots: DayResult["plots"][number][] = [];
  const opened: { close(): Promise<unknown> }[] = [];
  const notes: DayNotes = {
    judge(promise, held, measured) {
      if (verdicts.has(promise)) throw new Error(`${day.name} judges "${promise}" twice`);
      verdicts.set(promise, { ...day.promises[promise]!, held, measured });
    },
    fact: (text, timed) => void facts.push({ text, timed: timed !== undefined }),
    plot: (plot) => void plots.push(plot),
    opened(one) {
      opened.push(one);
      return one;
    },
  };
  let failure: string | undefined;
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      failure ??= error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
  };
  const closeAll = async (): Promise<void> => {
    for (const one of opened.splice(0).toReversed()) await attempt(() => one.close());
  };
  onBegin(closeAll);
  await attempt(() => day.play(notes, options));
  await closeAll();
  return {
    day: day.name,
    form: options.form,
    tookMs: performance.now() - beganMs,
    verdicts: Object.entries(day.promises).map(
      ([key, promised]) => verdicts.get(key) ?? { ...promised, held: false, measured: "was not measured" },
    ),
    facts,
    plots,
    ...(failure === undefined ? {} : { failure }),
  };
}

/** Every broken promise, one line each. Empty if the day went as promised. */
export function findBroken({ day, failure, verdicts }: DayResult, { timed = true } = {}): readonly string[] {
  const broken = verdicts.filter((one) => !one.held && (timed || one.timed !== true));
  return [
    ...(failure === undefined ? [] : [`${day} could not be played to its end: ${failure}`]),
    ...broken.map(({ text, measured }) => `${day}: ${text}: ${measured}`),
  ];
}
