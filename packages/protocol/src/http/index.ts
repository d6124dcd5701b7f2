export type { BodyOf, BodyShape, ViewOf } from "../shapes/body-shape.ts";
export { type BatchBody, batch } from "./batch.ts";
export { type GivenBackBody, givenBack, type ResetBody, reset } from "./counters.ts";
export { type DecisionBody, type DenialBody, decision, denial } from "./decision.ts";
export { type ErrorBody, error, type ProblemBody } from "./error.ts";
export { type ExplanationBody, explanation } from "./explanation.ts";
export { type HoldAnswerBody, type HoldBody, hold, holdAnswer } from "./hold.ts";
export {
  type HotKeyOrder,
  type HotKeysHereBody,
  hotKeyOrders,
  hotKeysHere,
  mostHotKeys,
  usualHotKeys,
} from "./hot-key.ts";
export { type LeaseBody, lease } from "./lease.ts";
export { type PolicySetBody, policySet } from "./policy-set.ts";
export { type Degradation, type LeasesBody, type LiveBody, live, type ReadyBody, ready } from "./readiness.ts";
export {
  type CountersStatusBody,
  type ShardStatusBody,
  type StatusBody,
  type StoreStatusBody,
  status,
} from "./status.ts";
export { labelledWindow, type WindowBody, window } from "./window.ts";
