import {
  aClock,
  aFunction,
  anObject,
  checkOptions,
  numberFrom,
  type OptionForm,
  type OptionForms,
  withMethods,
} from "./check-options.ts";
import { SluiceError } from "./errors.ts";
import type { LimiterOptions } from "./limiter.ts";

export const someCounters: OptionForm = withMethods(
  ["take", "peek", "give", "charge", "block", "reset", "read", "close"],
  "a counter store, such as redis(url) of @sluice/redis or new MemoryCounters()",
);

/** A preview is never older than this. */
export const maxPreviewCacheMs = 50;

const forms: OptionForms<LimiterOptions> = {
  policies: {
    holds: anObject.holds,
    wanted: "an object such as { policies: [{ id, limits }] }, or policyFile(path) of sluice/policy-file",
  },
  counters: someCounters,
  subjects: withMethods(["find"], "a subject directory, such as new MemorySubjectDirectory()"),
  clock: aClock,
  // The code that uses it names its bounds.
  ipv6PrefixBits: undefined,
  previewCacheMs: numberFrom(0, maxPreviewCacheMs),
  onTrial: aFunction,
  onMissing: aFunction,
  onPreviewHit: aFunction,
  watch: anObject,
};

const oneLine = 'for a limit in one line write limit("100/m").by("user")';

const foreign = {
  limit: oneLine,
  limits: `limits belong to a policy: createLimiter({ policies: { policies: [{ id, limits }] } }); ${oneLine}`,
  windows: `windows belong to a limit of a policy; ${oneLine}`,
  windowMs: oneLine,
  max: oneLine,
  points: oneLine,
  duration: oneLine,
  store: "counters is where counters live",
  redis: "write counters: redis(url), with redis of @sluice/redis",
};

/** Refuses unknown options of `createLimiter`: without policies, the default policy would decide everything. */
export function checkLimiterOptions(options: LimiterOptions): void {
  checkOptions(options, forms, { name: "createLimiter", code: "invalid_policies", foreign });
}

export function checkPrefixBits(bits: number): number {
  if (Number.isInteger(bits) && bits >= 1 && bits <= 128) return bits;
  const message = `must be a whole number from 1 to 128, not ${bits}`;
  throw new SluiceError("invalid_request", `ipv6PrefixBits ${message}`, [{ path: ["ipv6PrefixBits"], message }]);
}
