/** `@sluice/server/command`: what the `sluice` command loads for `serve`, and for what needs a store directly. */
export { CommandFailure } from "./command/command-failure.ts";
export { makeTokenAtStore, type TokenAtStoreRequest } from "./command/make-token-at-store.ts";
export {
  type MeasuredCapacity,
  type MeasuredStore,
  type MeasuredTransport,
  type MeasureRequest,
  measureCapacity,
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
