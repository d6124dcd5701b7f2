import { aClock, checkOptions, type OptionForms, trueOrFalse } from "./check-options.ts";
import type { Clock } from "./clock.ts";
import type { CounterStore, Receipt } from "./counters/counter-store.ts";
import { createLimiter } from "./create-limiter.ts";
import type { Decision } from "./decision/decision.ts";
import { type Problem, SluiceError } from "./errors.ts";
import type { Explanation, Limiter } from "./limiter.ts";
import { someCounters } from "./limiter-options.ts";
import { parsePolicies } from "./policy/parse-policies.ts";
import type { Algorithm, FailMode } from "./policy/policy.ts";
import type { CheckRequest } from "./request/check-request.ts";
import { describeValue, problemsError } from "./shape/reading.ts";

/** A window as policies write it: `10/s burst 20`, or its parts. */
export type WrittenWindow =
  | string
  | {
      readonly limit: number;
      readonly per: string | number | Readonly<Record<string, string>>;
      readonly burst?: number | undefined;
    };

export interface LimitOptions {
  /**
   * Names the limit in answers, and its counters. Required if counters are shared with others: two limits of one name
   * are one limit. Absent: `limit`.
   */
  readonly name?: string | undefined;
  /** Absent: `gcra`. */
  readonly algorithm?: Algorithm | undefined;
  /** What happens when counters are unavailable. Absent: `open`. */
  readonly onFailure?: FailMode | undefined;
  /** After a denial the subject is denied for this long: `5m`. */
  readonly blockFor?: string | undefined;
  /** Whether subjects can be blocked by hand, which costs every check a lookup. Absent: if `blockFor` is given. */
  readonly blockable?: boolean | undefined;
  /** Where counters live. Absent: in this process's memory. */
  readonly counters?: CounterStore | undefined;
  readonly clock?: Clock | undefined;
}

/** The subject: the value of the only dimension, or every dimension by its name. */
export type SubjectOf<Dimension extends string> = string | Readonly<Record<Dimension, string>>;

/** The options of a single check, besides its subject. */
export type LimitCheckOptions = Pick<CheckRequest, "cost" | "id" | "idTtlMs" | "details" | "receipt">;

/** One limit that decides alone, for apps that need no policies. It makes the same promises as `Limiter`. */
export interface OneLimit<Dimension extends string = string> {
  check(subject: SubjectOf<Dimension>, options?: LimitCheckOptions): Promise<Decision>;
  checkSync(subject: SubjectOf<Dimension>, options?: LimitCheckOptions): Decision;
  peek(subject: SubjectOf<Dimension>, options?: Pick<LimitCheckOptions, "cost" | "details">): Promise<Decision>;
  give(receipt: Receipt): Promise<boolean>;
  charge(subject: SubjectOf<Dimension>, cost: number): Promise<void>;
  /** Denies the subject for this long; needs `blockable` or `blockFor`. */
  block(subject: SubjectOf<Dimension>, forMs: number): Promise<void>;
  reset(subject: SubjectOf<Dimension>): Promise<void>;
  explain(subject: SubjectOf<Dimension>, options?: Pick<LimitCheckOptions, "cost">): Promise<Explanation>;
  close(): Promise<void>;
  readonly dimensions: readonly Dimension[];
  /** The policy that this limit stands for, as a policy file would write it. */
  readonly policy: Readonly<Record<string, unknown>>;
  /** The limiter that decides. */
  readonly limiter: Limiter;
}

/** A limit whose dimensions are still to be named. */
export interface LimitBuilder {
  /** One counter for every value of the dimension, or for every combination of their values. */
  by<const Dimension extends string>(...dimensions: readonly [Dimension, ...Dimension[]]): OneLimit<Dimension>;
}

/** The name of a limit without one. */
const unnamedLimit = "limit";

/** The contents of policies are checked when they are parsed. */
const limitOptions: OptionForms<LimitOptions> = {
  name: undefined,
  algorithm: undefined,
  onFailure: undefined,
  blockFor: undefined,
  blockable: trueOrFalse,
  counters: someCounters,
  clock: aClock,
};

/** Options of other libraries for the same thing, and of ours that belong in other places. */
const foreignOptions = {
  by: 'write limit("10/s").by("user")',
  burst: 'it belongs to the window: limit("10/s burst 20")',
  windowMs: 'write the window as text: limit("100/15m")',
  limit: 'write the window as text: limit("100/15m")',
  max: 'write the window as text: limit("100/15m")',
};

/**
 * A limit in one line: `limit("10/s burst 20").by("user")`. If it has several windows, all must have room. Nothing is
 * opened until the first check.
 */
export function limit(windows: WrittenWindow | readonly WrittenWindow[], options: LimitOptions = {}): LimitBuilder {
  checkOptions(options, limitOptions, { name: "limit", code: "invalid_policies", foreign: foreignOptions });
  // Throws here rather than when `by` is called, or never.
  checkPolicy(createPolicy(windows, ["subject"], options));
  return { by: (...dimensions) => createOneLimit(windows, dimensions, options) };
}

function createPolicy(
  windows: WrittenWindow | readonly WrittenWindow[],
  dimensions: readonly string[],
  { name = unnamedLimit, algorithm, onFailure = "open", blockFor, blockable }: LimitOptions,
): OneLimit["policy"] {
  return {
    id: name,
    limits: [
      {
        by: dimensions,
        windows,
        ...(algorithm !== undefined && { algorithm }),
        ...(blockFor !== undefined && { block_for: blockFor }),
        ...(blockable !== undefined && { blockable }),
      },
    ],
    on_failure: onFailure,
  };
}

/** Names problems as given to `limit`, not as they stand in a policy. */
function checkPolicy(policy: OneLimit["policy"]): void {
  try {
    parsePolicies({ policies: [policy] });
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    throw problemsError("invalid_policies", "limit(windows, options)", error.problems.map(asGiven));
  }
}

const givenNames: Readonly<Record<string, string>> = { id: "name", block_for: "blockFor", on_failure: "onFailure" };

function asGiven({ path, message }: Problem): Problem {
  const ofPolicy = path.slice(2);
  const given = ofPolicy[0] === "limits" ? ofPolicy.slice(2) : ofPolicy;
  return { path: given.map((step) => givenNames[step] ?? step), message };
}

function createOneLimit<Dimension extends string>(
  windows: WrittenWindow | readonly WrittenWindow[],
  dimensions: readonly Dimension[],
  options: LimitOptions,
): OneLimit<Dimension> {
  const { counters, clock } = options;
  if (dimensions.length === 0 || dimensions.some((name) => typeof name !== "string")) {
    const given =
      dimensions.length === 0 ? "nothing" : describeValue(dimensions.find((one) => typeof one !== "string"));
    const message = `must be given the names of dimensions, as in .by("user") or .by("tenant", "user"), but was given ${given}`;
    throw new SluiceError("invalid_policies", `by ${message}`, [{ path: ["by"], message }]);
  }
  if (counters !== undefined && !counters.local && options.name === undefined) {
    const message = "must be given if counters are shared, so that no other limit uses the same ones";
    throw new SluiceError("invalid_policies", `name ${message}`, [{ path: ["name"], message }]);
  }
  const policy = createPolicy(windows, dimensions, options);
  checkPolicy(policy);
  const limiter = createLimiter({
    policies: { policies: [policy] },
    ...(counters !== undefined && { counters }),
    ...(clock !== undefined && { clock }),
  });
  const request = (subject: SubjectOf<Dimension>, more?: LimitCheckOptions): CheckRequest => ({
    ...more,
    dimensions: dimensionsFrom(dimensions, subject),
  });
  return {
    check: async (subject, more) => limiter.check(request(subject, more)),
    checkSync: (subject, more) => limiter.checkSync(request(subject, more)),
    peek: async (subject, more) => limiter.peek(request(subject, more)),
    give: (receipt) => limiter.give(receipt),
    charge: async (subject, cost) => limiter.charge(request(subject, { cost })),
    block: async (subject, forMs) => limiter.block(request(subject), forMs),
    async reset(subject): Promise<void> {
      await limiter.reset(request(subject));
    },
    explain: async (subject, more) => limiter.explain(request(subject, more)),
    close: () => limiter.close(),
    dimensions,
    policy,
    limiter,
  };
}

function dimensionsFrom(names: readonly string[], subject: SubjectOf<string>): Readonly<Record<string, string>> {
  if (typeof subject === "string") {
    if (names.length === 1) return { [names[0]!]: subject };
    throw wrongSubject(`must name every dimension of the limit (${names.join(", ")}), because there are several`);
  }
  if (typeof subject !== "object" || subject === null) throw wrongSubject(`must be texts, but are ${show(subject)}`);
  for (const name of names) {
    // Which dimension is "the subject" depends on those present.
    if (name === "subject" || typeof subject[name] === "string") continue;
    throw wrongSubject(`must have a text for ${name}, but it is ${show(subject[name])}`);
  }
  return subject;
}

/** A subject that is absent would share one counter with every other such subject. */
function wrongSubject(message: string): SluiceError {
  return new SluiceError("invalid_request", `dimensions ${message}`, [{ path: ["dimensions"], message }]);
}

function show(value: unknown): string {
  return value === undefined ? "undefined" : describeValue(value);
}
