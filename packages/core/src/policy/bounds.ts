// What requests and policies are bounded by, in the library and over every protocol.

export const maxCost = 100_000;
/** How long a subject may be blocked for at most. */
export const maxBlockMs: number = 30 * 24 * 60 * 60 * 1000;
export const maxDimensions = 32;
export const maxDimensionLength = 4096;
export const maxIdLength = 256;
export const maxIdTtlMs: number = 24 * 60 * 60 * 1000;
export const maxNamedPolicies = 32;
export const maxGivenLimits = 16;
export const maxDeadlineMs = 60_000;
