import { described, text } from "sluice/shape";
import { pageQuery } from "../../control-plane/admin-api/query-parameters.ts";
import { type AdminRoute, adminRoute } from "../../control-plane/admin-api/route.ts";
import { dimensionVocabulary } from "./dimension-vocabulary.ts";
import { createRuleHandler } from "./handlers/create-rule.ts";
import { createUserOverride } from "./handlers/create-user-override.ts";
import { deleteRuleHandler } from "./handlers/delete-rule.ts";
import { getRule } from "./handlers/get-rule.ts";
import { getUserLimits } from "./handlers/get-user-limits.ts";
import { listRules } from "./handlers/list-rules.ts";
import { putRule } from "./handlers/put-rule.ts";
import { putUserTier } from "./handlers/put-user-tier.ts";
import type { RuleVocabulary } from "./rule-vocabulary.ts";
import { scopeVocabulary } from "./scope-vocabulary.ts";
import { userOverrideShape, userTierShape } from "./user-shapes.ts";

const version = { ETag: "The version of its policy" };
const ruleParameters = { rule_id: "The policy's id; for a tier followed by ~ and the tier" };
const userParameters = { user_id: "The value of the dimension user, with %2F for a slash" };
const changed = { description: "The saved rule or user (unsaved in a dry run)" };

/** The same rules in either vocabulary: each is a view of a policy, or of part of one. */
function ruleRoutes(vocabulary: RuleVocabulary, by: string): readonly AdminRoute[] {
  const { path, schema } = vocabulary;
  const one = `${path}/{rule_id}`;
  return [
    adminRoute({
      method: "GET",
      path,
      summary: `List policies as rules by ${by}`,
      action: "policy.list",
      needs: "read",
      query: {
        ...pageQuery,
        ...Object.fromEntries(
          vocabulary.listedBy.map((name) => [name, described(text({ max: 64 }), `Only rules of this ${name}`)]),
        ),
      },
      answers: {
        200: {
          description: "The rules of up to `limit` policies; a policy that is not a rule has one entry, which says why",
          content: [`${schema}Page`],
          headers: { Link: "The next page, if there is one" },
        },
      },
      handle: listRules(vocabulary),
    }),
    adminRoute({
      method: "POST",
      path,
      summary: `Create a rule by ${by}`,
      action: "policy.put",
      needs: "edit",
      body: vocabulary.created,
      answers: {
        201: {
          description: "The new rule (not created in a dry run)",
          content: [`${schema}Change`],
          headers: { ...version, Location: "The path of the rule" },
        },
      },
      handle: createRuleHandler(vocabulary),
    }),
    adminRoute({
      method: "GET",
      path: one,
      summary: `Show a rule by ${by}`,
      action: "policy.get",
      needs: "read",
      pathParameters: ruleParameters,
      answers: {
        200: { description: "The rule, or why the policy is not one", content: [schema], headers: version },
      },
      handle: getRule(vocabulary),
    }),
    adminRoute({
      method: "PUT",
      path: one,
      summary: `Change a rule by ${by}`,
      action: "policy.put",
      needs: "edit",
      expects: "or_any",
      pathParameters: ruleParameters,
      body: vocabulary.replaced,
      answers: { 200: { ...changed, content: [`${schema}Change`], headers: version } },
      handle: putRule(vocabulary),
    }),
    adminRoute({
      method: "DELETE",
      path: one,
      summary: `Delete a rule by ${by}; deleting its last rule deletes the policy`,
      action: "policy.delete",
      needs: "edit",
      expects: "or_any",
      pathParameters: ruleParameters,
      answers: {
        200: { description: "The outcome of the deletion (nothing is deleted in a dry run)", content: ["Change"] },
      },
      handle: deleteRuleHandler,
    }),
  ];
}

/** Routes in the vocabularies of other limiters, over the same policies. */
export const facadeRoutes: readonly AdminRoute[] = [
  ...ruleRoutes(dimensionVocabulary, "dimension and tier"),
  ...ruleRoutes(scopeVocabulary, "scope and API"),
  adminRoute({
    method: "GET",
    path: "/api/v1/users/{user_id}/limits",
    summary: "Show a user's limits, with the source of each",
    action: "subject.get",
    needs: "read",
    pathParameters: userParameters,
    answers: {
      200: {
        description: "The user's limits, even if nothing is stored about the user",
        content: ["User"],
        headers: { ETag: "The user's version; 0 if nothing is stored" },
      },
    },
    handle: getUserLimits,
  }),
  adminRoute({
    method: "PUT",
    path: "/api/v1/users/{user_id}/tier",
    summary: "Give a user a tier",
    action: "subject.tier",
    needs: "operate",
    expects: "or_any",
    pathParameters: userParameters,
    body: userTierShape,
    answers: { 200: { ...changed, content: ["UserChange"], headers: { ETag: "The user's version" } } },
    handle: putUserTier,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/users/{user_id}/override",
    summary: "Give a user an override, which ends automatically",
    action: "subject.override",
    needs: "operate",
    expects: "or_any",
    pathParameters: userParameters,
    body: userOverrideShape,
    answers: {
      201: {
        description: "The override (unchanged in a dry run)",
        content: ["UserChange"],
        headers: { ETag: "The user's version" },
      },
    },
    handle: createUserOverride,
  }),
];
