import {
  type BodyOf,
  boolean,
  choice,
  described,
  epochMs,
  fromView,
  integer,
  listOf,
  number,
  text,
  type ViewOf,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeShape } from "./change.ts";
import { pageShape } from "./page.ts";

/**
 * waiting: for its start. observing: measures the old version, before any subject gets the new one. running: in steps.
 * paused: stays at its step. The last three are ends.
 */
export const rolloutStates = ["waiting", "observing", "running", "paused", "done", "rolled_back", "cancelled"] as const;
export type RolloutState = (typeof rolloutStates)[number];

const waitFields = objectOf({
  code: choice([
    "start",
    "observation",
    "baseline",
    "hold",
    "looks",
    "fine_look",
    "traffic",
    "operator",
    "kill_switch",
    "due",
  ]),
  until_ms: optional(
    described(integer, "Epoch milliseconds: when the wait is over, or is given up and the rollout continues."),
  ),
  minutes: optional(
    described(integer, "Minutes with traffic from the subjects that join first, under the old version."),
  ),
  minutes_needed: optional(integer),
  decided: optional(described(integer, "Decisions in these minutes; for `traffic`, since the latest look.")),
  decided_needed: optional(integer),
  looks: optional(described(integer, "Minutes on this step that could be compared.")),
  looks_needed: optional(integer),
  strikes: optional(described(integer, "Consecutive looks above the threshold.")),
  strikes_to_roll_back: optional(integer),
});

/** Each wait has its numbers. */
type WaitView =
  | { readonly code: "start" | "hold" | "kill_switch"; readonly untilMs: number }
  | {
      readonly code: "observation" | "baseline";
      readonly untilMs: number;
      readonly minutes: number;
      readonly minutesNeeded: number;
      readonly decided: number;
      readonly decidedNeeded: number;
    }
  | { readonly code: "looks"; readonly untilMs: number; readonly looks: number; readonly looksNeeded: number }
  | { readonly code: "fine_look"; readonly strikes: number; readonly strikesToRollBack: number }
  | { readonly code: "traffic"; readonly decided: number; readonly decidedNeeded: number }
  | { readonly code: "operator" | "due" };

const noNumbers: Omit<ViewOf<typeof waitFields>, "code"> = {
  untilMs: undefined,
  minutes: undefined,
  minutesNeeded: undefined,
  decided: undefined,
  decidedNeeded: undefined,
  looks: undefined,
  looksNeeded: undefined,
  strikes: undefined,
  strikesToRollBack: undefined,
};

/** Why a rollout is not advancing now. */
export const rolloutWait = fromView(waitFields, (wait: WaitView) => ({ ...noNumbers, ...wait }));
export type RolloutWaitBody = BodyOf<typeof rolloutWait>;

const comparedFields = {
  decided: integer,
  denied: integer,
  rate: number,
  baseline: number,
  baseline_minutes: number,
  baseline_decided: number,
  others: number,
  sigma: number,
  threshold: number,
};

const compared = objectOf(comparedFields);
export type ComparedFiguresBody = BodyOf<typeof compared>;

const figureFields = objectOf({
  minute: integer,
  minutes: integer,
  verdict: choice(["fine", "strike", "unclear", "none"]),
  because: optional(
    described(
      choice(["others", "surplus", "no_baseline", "old_version_unused"]),
      "Why the verdict is `unclear` or `none`.",
    ),
  ),
  sentence: text,
  looks: integer,
  strikes: integer,
  total: compared,
  rings: listOf(objectOf({ step: integer, judged: boolean, ...comparedFields })),
});

type FiguresView = ViewOf<typeof figureFields>;

/** The result of the latest look at a rollout. Metrics from earlier versions lack `because`. */
export const rolloutFigures = fromView(
  figureFields,
  (figures: Omit<FiguresView, "because"> & { readonly because?: FiguresView["because"] }): FiguresView => ({
    ...figures,
    because: figures.because,
  }),
);
export type RolloutFiguresBody = BodyOf<typeof rolloutFigures>;

export const rolloutStep = objectOf({ percent: number, hold_ms: integer });
export type RolloutStepBody = BodyOf<typeof rolloutStep>;

/** A new version of a policy on its way to every subject. */
export const rollout = objectOf({
  id: text,
  policy: text,
  from_version: integer,
  to_version: integer,
  state: choice(rolloutStates),
  percent: described(number, "Share of subjects under the new version now."),
  shadow: boolean,
  by: text,
  steps: listOf(rolloutStep),
  step: described(integer, "The current step; -1: none yet."),
  step_since_ms: epochMs,
  starts_ms: epochMs,
  observe_for_ms: integer,
  expect_more_denials: boolean,
  strikes: integer,
  waits_for: optional(
    described(rolloutWait, "Why it is not advancing now. Absent if it has ended, and in lists of policies."),
  ),
  figures: optional(described(rolloutFigures, "From the latest look. Rates are shares, 0 to 1.")),
  reason: text,
  author: text,
  created_ms: epochMs,
  changed_ms: epochMs,
});
export type RolloutBody = BodyOf<typeof rollout>;

export const rolloutPage = pageShape(rollout);

const count = objectOf({ decided: integer, denied: integer });

/** What was decided in one minute, apart by the version that decided. */
export const rolloutMinute = objectOf({
  start_ms: epochMs,
  old: optional(described(count, "By the old version. Absent: nothing.")),
  new: optional(described(count, "By the new version. Absent: nothing.")),
  shadow: optional(described(count, "By the new version of a rollout in shadow: what it would have decided.")),
});
export type RolloutMinuteBody = BodyOf<typeof rolloutMinute>;

export const rolloutMinutes = objectOf({ items: listOf(rolloutMinute) });
export type RolloutMinutesBody = BodyOf<typeof rolloutMinutes>;

export const rolloutChange = changeShape({ rollout });
export type RolloutChangeBody = BodyOf<typeof rolloutChange>;
