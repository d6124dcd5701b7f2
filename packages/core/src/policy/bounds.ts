// The bounds of requests and policies, in the library and over every protocol, and their defaults.

export const maxCost = 100_000;
/** How long a subject may be blocked for at most. */
export const maxBlockMs: number = 30 * 24 * 60 * 60 * 1000;
/** For a domain, and for the name of a dimension. */
export const maxNameLength = 128;
export const maxDimensions = 32;
export const maxDimensionLength = 4096;
export const maxIdLength = 256;
/** How long a request id is remembered if a request does not say. */
export const defaultIdTtlMs: number = 10 * 60 * 1000;
export const maxIdTtlMs: number = 24 * 60 * 60 * 1000;
/** The largest amount that may be held, and the largest cost that may be reported for it. */
export const maxHoldAmount = 10_000_000;
/** How long an amount is held if a request does not say, and at most. */
export const defaultHoldTtlMs: number = 60 * 1000;
export const maxHoldTtlMs: number = 24 * 60 * 60 * 1000;
/** How long a hold is remembered after it was settled or expired. */
export const rememberHoldMs: number = 10 * 60 * 1000;
export const maxNamedPolicies = 32;
export const maxGivenLimits = 16;
/** How long a check waits for remote counters by default. */
export const defaultDeadlineMs = 25;
export const maxDeadlineMs = 60_000;
