import { freeTier } from "./read-rules.ts";
import { createRuleWords, type RuleWords } from "./rule-words.ts";

/** Rules by dimension and tier. */
export const dimensionWords: RuleWords = createRuleWords({
  path: "/api/v1/rules",
  schema: "DimensionRule",
  fields: {
    id: "rule_id",
    name: "name",
    dimension: "dimension",
    value: "identifier",
    endpoint: "endpoint_pattern",
    algorithm: "algorithm",
    limit: "limit",
    windowSeconds: "window_seconds",
    burst: "burst",
    tier: "tier",
  },
  dimensionExamples: "user, ip or apikey",
  apiKey: "apikey",
  nobodysTier: freeTier,
});
