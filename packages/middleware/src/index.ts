/** For writing an adapter for another framework. Each supported framework has its own subpath. */
export { attachTicket, findTicket } from "./attach-ticket.ts";
export {
  createGate,
  type Gate,
  type Passed,
  type Refused,
  type RequestReader,
  type Skipped,
  type Verdict,
} from "./gate.ts";
export type { AskedLimiter, Limits, OneLineOptions } from "./limits.ts";
export type { DimensionValue, Held, OwnRefusal, RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { BadRequestBody, RefusalBody } from "./refusal.ts";
export type { Ticket } from "./ticket.ts";
