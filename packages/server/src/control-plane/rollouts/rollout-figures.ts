/**
 * What the latest look at a rollout saw: what `figures` of a `RolloutRecord` holds, as JSON. Rates are shares, 0 … 1.
 *
 * A ring is the subjects that join at the same step. Each is compared with itself: with the minutes before it joined.
 */
export interface RolloutFigures {
  /** The last whole minute that was looked at, in minutes since 1970. */
  readonly minute: number;
  /** How many minutes the look covers: more than one where a single one has too little traffic. */
  readonly minutes: number;
  readonly verdict: RolloutVerdict;
  /** Why the verdict is `unclear` or `none`. Absent otherwise, and in what earlier versions stored. */
  readonly because?: LookReason | undefined;
  /** For people: the verdict and the numbers it rests on. */
  readonly sentence: string;
  /** Looks on this step that told something. */
  readonly looks: number;
  /** Looks in a row that were beyond what is usual. */
  readonly strikes: number;
  /** All rings that were judged, together. */
  readonly total: ComparedFigures;
  /** Ring by ring, in the order in which they join. */
  readonly rings: readonly RingFigures[];
}

/**
 * - `fine`: as usual, or better
 * - `strike`: more is denied than can be put down to chance
 * - `unclear`: more is denied than usual, but to others as well, or only to requests that are more than usual
 * - `none`: there is nothing to compare with
 */
export type RolloutVerdict = "fine" | "strike" | "unclear" | "none";

/**
 * - `others`: subjects whose version did not change are denied more often as well
 * - `surplus`: only requests beyond the usual number were denied
 * - `no_baseline`: too little was decided for these subjects under the old version
 * - `old_version_unused`: every subject is under the new version, and has been for minutes
 */
export type LookReason = "others" | "surplus" | "no_baseline" | "old_version_unused";

export interface ComparedFigures {
  /** Under the new version, in the minutes of this look. */
  readonly decided: number;
  readonly denied: number;
  readonly rate: number;
  /**
   * Under the old version: the mean, and how many minutes and decisions were seen. In shadow: the same minutes. The mean is 0
   * where they are too few.
   */
  readonly baseline: number;
  readonly baselineMinutes: number;
  readonly baselineDecided: number;
  /** How many times as often as in the baseline others were denied, whose version did not change. 1 where that is not known. */
  readonly others: number;
  /** How far a look strays from what is expected by chance alone. */
  readonly sigma: number;
  /** A rate above this is a strike. */
  readonly threshold: number;
}

export interface RingFigures extends ComparedFigures {
  /** The step at which these subjects join. */
  readonly step: number;
  /** Whether there was enough to compare. */
  readonly judged: boolean;
}

/** What a rollout's `figures` say; undefined where nothing was looked at yet. */
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
