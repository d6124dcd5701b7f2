/**
 * Windows as people write them: `100/s burst 200`, `16.67/s`, `100k/h`, `1000/day in Europe/Berlin`, `100 once`, or
 * `{ limit: 100, per: 1s, burst: 200, name: steady }`.
 */
import { byType } from "../shape/list-shapes.ts";
import { objectOf } from "../shape/object-shapes.ts";
import { describeValue, type Invalid, invalid, type Reading } from "../shape/reading.ts";
import { choice, described, number, parseShape, refine, type Shape, text } from "../shape/shape.ts";
import { windowName } from "./names.ts";
import { dayMs, duration } from "./parse-duration.ts";
import type { Algorithm, Limit, Per, Window } from "./policy.ts";
import { timeZone } from "./time-zone.ts";

const maxAmount = 1e12;
const maxPerSecond = 1e7;
/** Ten years, leap days included. */
const maxPerMs = 3_653 * dayMs;
/** 100 years: a full burst must drain within that. */
export const maxDrainMs: number = 36_525 * dayMs;

const per = duration({ maxMs: maxPerMs });

const amountForm = /^(\d+(?:_\d+)*(?:\.\d+)?)([kM]?)$/;
const shorthandForm = /^([^\s/]+)(?:\s*\/\s*(\S+(?:\s+in\s+\S+)?)(?:\s+burst\s+(\S+))?|\s+once)$/;
const calendarForm = /^(\S+)\s+in\s+(\S+)$/;

const examples = ["100/s burst 200", "3000/m", "100k/h", "1000/day in Europe/Berlin", "100 once"];

export interface WrittenWindow {
  readonly limit: number;
  readonly per: Per;
  readonly burst?: number;
  readonly name?: string;
}

const shorthand: Shape<Window> = refine(text({ max: 128 }), readShorthand, `a window, such as "${examples[0]}"`);

function readShorthand(written: string, reading: Reading): Window | Invalid {
  const parts = shorthandForm.exec(written.trim());
  if (parts === null) return notAWindow(written, reading);
  const [, limitText = "", perText, burstText] = parts;
  const limit = readAmount(limitText, reading);
  const length = perText === undefined ? ({ kind: "never" } as const) : readPer(perText, reading);
  const burst = burstText === undefined ? undefined : readAmount(burstText, reading);
  if (limit === invalid || length === invalid || burst === invalid) return invalid;
  return finishWindow({ limit, per: length, ...(burst === undefined ? undefined : { burst }) }, reading);
}

function notAWindow(written: string, reading: Reading): Invalid {
  if (amountForm.test(written.trim()))
    return reading.problem(
      `has no duration: write "${written.trim()}/s", or "${written.trim()} once" for a one-off quota`,
    );
  const known = examples.map((one) => `"${one}"`).join(", ");
  return reading.problem(`must be a window, such as ${known}, but is ${describeValue(written)}`);
}

function readAmount(written: string, reading: Reading): number | Invalid {
  const parts = amountForm.exec(written);
  if (parts === null)
    return reading.problem(
      `must have numbers such as 100, 16.67, 10_000, 100k (thousands) or 1.5M (millions), but has ${describeValue(written)}`,
    );
  // Decimal text with an exponent is exact; a multiplication might not be.
  return Number(`${parts[1]!.replaceAll("_", "")}${{ k: "e3", M: "e6" }[parts[2]!] ?? ""}`);
}

function readPer(written: string, reading: Reading): Per | Invalid {
  if (written === "never") return { kind: "never" };
  const calendar = calendarForm.exec(written);
  if (calendar !== null) {
    const unit = { d: "day", day: "day", month: "month" }[calendar[1]!] as "day" | "month" | undefined;
    const zone = timeZone.read(calendar[2], reading);
    if (unit === undefined)
      return reading.problem(`has a calendar unit ${describeValue(calendar[1])}; use day or month`);
    return zone === invalid ? invalid : { kind: "calendar", unit, timeZone: zone };
  }
  if (/^months?$/.test(written))
    return reading.problem(`needs a time zone to know when a month begins: write "month in UTC", or 30d`);
  const ms = per.read(written, reading);
  return ms === invalid ? invalid : { kind: "ms", ms };
}

const amount: Shape<number> = described(
  byType({
    number: number({ min: 0, max: maxAmount }),
    text: refine(text({ max: 32 }), readAmount, "a number such as 100k"),
  }),
  "Cost that is allowed: 100, 16.67, 100k, 1.5M.",
);

const perText = refine(text({ max: 80 }), readPer);
const perCalendar = refine(
  objectOf({ calendar: choice(["day", "month"]), time_zone: timeZone }),
  (read): Per => ({ kind: "calendar", unit: read.calendar, timeZone: read.time_zone }),
);

export const perShape: Shape<Per> = {
  name: "a duration such as 1s, the word never, or { calendar: day or month, time_zone }",
  schema: { anyOf: [{ type: "string", examples: ["1s", "500ms", "1d", "never"] }, perCalendar.schema] },
  read(value, reading) {
    if (typeof value === "string") return perText.read(value, reading);
    if (typeof value === "object" && value !== null) return perCalendar.read(value, reading);
    // Its problem lists the units.
    return per.read(value, reading) === invalid ? invalid : { kind: "never" };
  },
};

const longhand: Shape<Window> = refine(
  objectOf(
    {
      limit: described(amount, "Cost allowed per `per`, in the long run."),
      per: described(
        perShape,
        "How long the window lasts: 500ms, 1s, 1d; `never` for a one-off quota; or a day or month in a time zone.",
      ),
    },
    {
      burst: described(amount, "Cost that may arrive at once. Left out: equal to `limit`."),
      name: described(windowName, "What the window is called in answers."),
    },
  ),
  (written, reading) => finishWindow(written, reading),
);

const windowForms = byType({
  text: described(shorthand, "A window in short: amount, slash, duration; then perhaps a burst or a time zone.", {
    examples,
    pattern: "^[0-9][0-9_]*(\\.[0-9]+)?[kM]?(\\s*/\\s*\\S+(\\s+in\\s+\\S+)?(\\s+burst\\s+\\S+)?|\\s+once)$",
  }),
  object: described(longhand, "A window in full."),
});

/** A window in short or in full, checked except for what depends on the algorithm. */
export const windowShape: Shape<Window> = {
  ...windowForms,
  read(value, reading) {
    // `100` alone is a likely slip; report it like the text "100".
    return typeof value === "number" ? notAWindow(String(value), reading) : windowForms.read(value, reading);
  },
};

/** A window whose numbers are within bounds, or problems with the fields that are not. `fields` are their names. */
export function finishWindow(
  written: WrittenWindow,
  reading: Reading,
  fields: { readonly limit: string; readonly burst: string } = { limit: "limit", burst: "burst" },
): Window | Invalid {
  const { limit, burst } = written;
  // Nothing flows in but something fits: that much, once.
  const oneOff = limit === 0 && burst !== undefined;
  const window: Window = {
    ...written,
    ...(oneOff ? { limit: burst, per: { kind: "never" } } : undefined),
    burst: burst ?? defaultBurst(limit),
  };
  const before = reading.problems.length;
  if (limit > maxAmount) reading.problem(`must be at most ${maxAmount}, but is ${limit}`, fields.limit);
  if (burst !== undefined && !(burst >= 1 && burst <= maxAmount))
    reading.problem(`must be from 1 to ${maxAmount}, but is ${burst}`, fields.burst);
  if (window.per.kind === "ms") {
    const perSecond = (limit * 1000) / window.per.ms;
    if (perSecond > maxPerSecond)
      reading.problem(`must be at most ${maxPerSecond} a second, but is ${perSecond.toPrecision(3)}`, fields.limit);
    if (limit > 0 && (window.burst * window.per.ms) / limit > maxDrainMs) {
      const field = burst === undefined ? fields.limit : fields.burst;
      reading.problem("must be such that a full burst flows out again within 100 years", field);
    }
  } else {
    const kind = window.per.kind === "never" ? "a one-off quota" : "a calendar window";
    if (burst !== undefined && !oneOff) reading.problem(`does not belong to ${kind}; leave it out`, fields.burst);
    if (!Number.isInteger(window.limit))
      reading.problem(`of ${kind} must be a whole number, but is ${window.limit}`, fields.limit);
  }
  return reading.problems.length > before ? invalid : window;
}

/** The default burst: the limit, and at least one unit if anything flows at all. */
export function defaultBurst(limit: number): number {
  return limit === 0 ? 0 : Math.max(limit, 1);
}

const withBurst: ReadonlySet<Algorithm> = new Set(["gcra", "token_bucket", "leaky_bucket"]);

/** What a limit cannot do with a window, by its algorithm or because it counts distinct values, and the field to blame. */
export function findMisfits(
  window: Window,
  { algorithm, distinct }: Pick<Limit, "algorithm" | "distinct">,
): readonly { readonly field: string; readonly message: string }[] {
  if (distinct !== undefined && (window.per.kind !== "ms" || window.limit < 1)) {
    if (window.per.kind === "ms")
      return [{ field: "limit", message: `must be at least 1 distinct value, but is ${window.limit}` }];
    const kind = window.per.kind === "never" ? "a one-off quota" : "a day or month of the calendar";
    return [{ field: "per", message: `is ${kind}, but distinct values are counted over a fixed time, such as 1d` }];
  }
  if (window.per.kind === "calendar" && algorithm !== "fixed_window") {
    const message = `is a day or month of the calendar, which needs algorithm fixed_window, not ${algorithm}`;
    return [{ field: "per", message }];
  }
  if (window.per.kind !== "ms" || withBurst.has(algorithm)) return [];
  const misfits = [];
  if (window.burst !== defaultBurst(window.limit)) {
    const message = `does not belong to ${algorithm}: only ${[...withBurst].join(", ")} have a burst; leave it out or change the algorithm`;
    misfits.push({ field: "burst", message });
  }
  if (!Number.isInteger(window.limit)) {
    const message = `must be a whole number for ${algorithm}, but is ${window.limit}; use a longer window, or algorithm gcra`;
    misfits.push({ field: "limit", message });
  }
  return misfits;
}

/** A window, checked against an algorithm if one is given. Throws `invalid_policies`. */
export function parseWindow(value: unknown, algorithm?: Algorithm): Window {
  const fitting = refine(windowShape, (window, reading) => {
    const misfits = algorithm === undefined ? [] : findMisfits(window, { algorithm });
    for (const { field, message } of misfits) reading.problem(message, field);
    return window;
  });
  return parseShape(fitting, value, "invalid_policies", "a window");
}
