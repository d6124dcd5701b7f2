import type { JsonSchema } from "sluice/shape";
import { integer, list, number, object, text, yesOrNo } from "../../data-plane/transports/http/schema-parts.ts";
import { dimensionVocabulary } from "./dimension-vocabulary.ts";
import type { RuleVocabulary } from "./rule-vocabulary.ts";
import { scopeVocabulary } from "./scope-vocabulary.ts";

const moment: JsonSchema = { type: "string", format: "date-time" };

const change: Readonly<Record<string, JsonSchema>> = {
  dry_run: yesOrNo,
  generation: {
    type: "integer",
    description: "The generation that nodes will decide by. Absent in a dry run, or if nothing changed.",
  },
  warnings: list(object({ field: text, message: text })),
};

const history: Readonly<Record<string, JsonSchema>> = {
  version: integer,
  created_at: moment,
  updated_at: moment,
  overridden_by: { const: "file", description: "A policy file has the same id, and files win: it is not in force." },
};
const historyOptional = ["created_at", "overridden_by"];

function ruleFields({ fields }: RuleVocabulary): Readonly<Record<string, JsonSchema>> {
  return {
    [fields.id]: text,
    [fields.name]: text,
    [fields.dimension]: text,
    [fields.value]: { type: "string", description: "`*`: each value separately." },
    [fields.endpoint]: { type: "string", description: "`*`: every request." },
    [fields.algorithm]: text,
    [fields.limit]: number,
    [fields.windowSeconds]: integer,
    [fields.burst]: number,
    [fields.tier]: text,
    ...history,
  };
}

function ruleSchemas(vocabulary: RuleVocabulary): Readonly<Record<string, JsonSchema>> {
  const { fields, schema } = vocabulary;
  const optional = [fields.name, fields.tier, ...historyOptional];
  const rule = object(ruleFields(vocabulary), ...optional);
  const noRule = object(
    { [fields.id]: text, expressible: { const: false }, reason: text, policy: text, ...history },
    ...historyOptional,
  );
  const either: JsonSchema = { anyOf: [rule, noRule] };
  return {
    [schema]: either,
    [`${schema}Page`]: object({ items: list(either), next: text }, "next"),
    [`${schema}Change`]: object({ ...ruleFields(vocabulary), ...change }, ...optional, "generation"),
  };
}

const userFields: Readonly<Record<string, JsonSchema>> = {
  user_id: text,
  tier: text,
  version: integer,
  limits: list(
    object(
      {
        rule_id: text,
        scope: text,
        algorithm: text,
        limit: number,
        window_seconds: number,
        burst: number,
        window: text,
        source: { enum: ["policy", "tier", "custom", "override"] },
        tier: text,
        expires_at: moment,
        shadow: yesOrNo,
        used: number,
        remaining: number,
        reset_after_seconds: integer,
      },
      "window_seconds",
      "tier",
      "expires_at",
      "shadow",
      "used",
      "remaining",
      "reset_after_seconds",
    ),
  ),
};

const replaced: JsonSchema = {
  ...object(
    { tier: text, rule_id: text, windows: list(text), expires_at: moment, reason: text, author: text },
    "tier",
    "rule_id",
    "windows",
    "expires_at",
    "reason",
    "author",
  ),
  description: "The tier or the override that was replaced. Absent: there was none.",
};

/** The bodies of these routes' answers, by name. */
export const facadeSchemas: Readonly<Record<string, JsonSchema>> = {
  ...ruleSchemas(dimensionVocabulary),
  ...ruleSchemas(scopeVocabulary),
  User: object(userFields),
  UserChange: object({ ...userFields, ...change, replaced }, "generation", "replaced"),
};
