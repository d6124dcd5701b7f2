import { freeTier } from "./read-rules.ts";
import { createRuleVocabulary, type RuleVocabulary } from "./rule-vocabulary.ts";

/** Rules by dimension and tier. */
export const dimensionVocabulary: RuleVocabulary = createRuleVocabulary({
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
  untieredName: freeTier,
});
