import {
  batch,
  decision,
  denial,
  error,
  explanation,
  givenBack,
  hold,
  holdAnswer,
  hotKeysHere,
  lease,
  live,
  policySet,
  ready,
  reset,
  status,
} from "@sluice/protocol/http";
import type { JsonSchema } from "sluice/shape";
import { rateLimitResponseSchema } from "../envoy/rate-limit-json.ts";

export type SchemaName =
  | "Decision"
  | "Denial"
  | "Error"
  | "BatchAnswer"
  | "GivenBack"
  | "Reset"
  | "GivenLease"
  | "Hold"
  | "HoldAnswer"
  | "Policies"
  | "Explanation"
  | "EnvoyAnswer"
  | "Live"
  | "Ready"
  | "HotKeysHere"
  | "Status";

/** The server's answers, by name. */
export const schemas: Readonly<Record<SchemaName, JsonSchema>> = {
  Decision: decision.schema,
  Denial: denial.schema,
  Error: error.schema,
  BatchAnswer: batch.schema,
  Reset: reset.schema,
  GivenBack: givenBack.schema,
  GivenLease: lease.schema,
  Hold: hold.schema,
  HoldAnswer: holdAnswer.schema,
  Policies: policySet.schema,
  Explanation: explanation.schema,
  EnvoyAnswer: rateLimitResponseSchema,
  Live: live.schema,
  Ready: ready.schema,
  HotKeysHere: hotKeysHere.schema,
  Status: status.schema,
};
