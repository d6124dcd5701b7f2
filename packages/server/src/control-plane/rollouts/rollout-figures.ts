/**
 * The result of the latest look at a rollout: the content of `figures` in a `RolloutRecord`, as JSON. Rates are shares,
 * 0 … 1.
 *
 * A ring is the subjects that join at the same step. Each is compared with itself: with the minutes before it joined.
 */
export interface RolloutFigures {
  /** The last whole minute of the look, in minutes since 1970. */
  readonly minute: number;
  /** How many minutes the look covers: more than one if a single one has too little traffic. */
  readonly minutes: number;
  readonly verdict: RolloutVerdict;
  /** Why the verdict is `unclear` or `none`. Absent otherwise, and in records of earlier versions. */
  readonly because?: LookReason | undefined;
  /** For people: the verdict and the numbers behind it. */
  readonly sentence: string;
  /** Conclusive looks on this step. */
  readonly looks: number;
  /** Consecutive looks above the threshold. */
  readonly strikes: number;
  /** All judged rings together. */
  readonly total: ComparedFigures;
  /** Ring by ring, in the order in which they join. */
  readonly rings: readonly RingFigures[];
}

/**
 * - `fine`: as usual, or better
 * - `strike`: more denials than chance explains
 * - `unclear`: more denials than usual, but for others as well, or only for requests beyond the usual number
 * - `none`: there is nothing to compare with
 */
export type RolloutVerdict = "fine" | "strike" | "unclear" | "none";

/**
 * - `others`: subjects whose version did not change are denied more often as well
 * - `surplus`: only requests beyond the usual number were denied
 * - `no_baseline`: the old version decided too few requests of these subjects
 * - `old_version_unused`: every subject is under the new version, and has been for minutes
 */
export type LookReason = "others" | "surplus" | "no_baseline" | "old_version_unused";

export interface ComparedFigures {
  /** Under the new version, in the minutes of this look. */
  readonly decided: number;
  readonly denied: number;
  readonly rate: number;
  /**
   * Under the old version: the mean, and the numbers of minutes and decisions. In shadow: the same minutes. The mean is
   * 0 if they are too few.
   */
  readonly baseline: number;
  readonly baselineMinutes: number;
  readonly baselineDecided: number;
  /** How many times as often as in the baseline others were denied, whose version did not change. 1 if unknown. */
  readonly others: number;
  /** How far a look strays from the expected rate by chance alone. */
  readonly sigma: number;
  /** A rate above this is a strike. */
  readonly threshold: number;
}

export interface RingFigures extends ComparedFigures {
  /** The step at which these subjects join. */
  readonly step: number;
  /** Whether there was enough traffic to compare. */
  readonly judged: boolean;
}

/** Parses a rollout's `figures`; undefined if there was no look yet. */
export function parseRolloutFigures(figures: string): RolloutFigures | undefined {
  if (figures === "") return undefined;
  try {
    const parsed: unknown = JSON.parse(figures);
    return typeof parsed === "object" && parsed !== null && "verdict" in parsed
      ? (parsed as RolloutFigures)
      : undefined;
  } catch {
    return undefined;
  }
}
