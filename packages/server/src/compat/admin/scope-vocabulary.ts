import { createRuleVocabulary, type RuleVocabulary } from "./rule-vocabulary.ts";

/** Rules by scope and API. */
export const scopeVocabulary: RuleVocabulary = createRuleVocabulary({
  path: "/rules",
  schema: "ScopeRule",
  fields: {
    id: "rule_id",
    name: "name",
    dimension: "scope",
    value: "scope_value",
    endpoint: "api",
    algorithm: "algorithm",
    limit: "max_requests",
    windowSeconds: "window_seconds",
    burst: "burst_size",
    tier: "tier",
  },
  dimensionExamples: "user, ip, org or api_key",
  apiKey: "api_key",
  untieredName: undefined,
  alsoRead: { dimension: "scope_type", endpoint: "api_endpoint" },
});
