/** `@sluice/server/command`: what the `sluice` command loads for `serve`, and for what needs a store directly. */
import type { MeasuredCapacity, MeasureRequest } from "./command/measure/measure-capacity.ts";

export { CommandFailure } from "./command/command-failure.ts";
export { makeTokenAtStore, type TokenAtStoreRequest } from "./command/make-token-at-store.ts";
export type {
  MeasuredCapacity,
  MeasuredStore,
  MeasuredTransport,
  MeasureRequest,
} from "./command/measure/measure-capacity.ts";
export { loadPolicySet, type OpenedCounters, openCounters } from "./command/open-counters.ts";
export type { ServeTerminal } from "./command/serve.ts";
export {
  describeServe,
  runServe,
  type ServeDescription,
  type ServeOption,
  type ServeRequest,
} from "./command/serve-command.ts";

/** Loads what measures only now: serving needs none of it. */
export async function measureCapacity(request: MeasureRequest): Promise<MeasuredCapacity> {
  const measuring = await import("./command/measure/measure-capacity.ts");
  return measuring.measureCapacity(request);
}
