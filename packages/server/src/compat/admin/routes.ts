import { described, text } from "sluice";
import { pageQuery } from "../../control-plane/admin-api/query-words.ts";
import { type AdminRoute, adminRoute } from "../../control-plane/admin-api/route.ts";
import { dimensionWords } from "./dimension-words.ts";
import { createRuleHandler } from "./handlers/create-rule.ts";
import { createUserOverride } from "./handlers/create-user-override.ts";
import { deleteRuleHandler } from "./handlers/delete-rule.ts";
import { getRule } from "./handlers/get-rule.ts";
import { getUserLimits } from "./handlers/get-user-limits.ts";
import { listRules } from "./handlers/list-rules.ts";
import { putRule } from "./handlers/put-rule.ts";
import { putUserTier } from "./handlers/put-user-tier.ts";
import type { RuleWords } from "./rule-words.ts";
import { scopeWords } from "./scope-words.ts";
import { userOverrideShape, userTierShape } from "./user-shapes.ts";

const version = { ETag: "The version of its policy" };
const ruleParameters = { rule_id: "The policy's id; for a tier with ~ and the tier behind it" };
const userParameters = { user_id: "The value of the dimension user, with %2F for a slash" };
const changed = { description: "As saved (unsaved in a dry run)" };

/** The same rules in either words: each is a view of a policy, or of a part of one. */
function ruleRoutes(words: RuleWords, by: string): readonly AdminRoute[] {
  const { path, schema } = words;
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
          words.listedBy.map((name) => [name, described(text({ max: 64 }), `Only rules of this ${name}`)]),
        ),
      },
      answers: {
        200: {
          description: "The rules of so many policies; one entry for each policy that is no rule, which says why",
          content: [`${schema}Page`],
          headers: { Link: "The next page, if there is one" },
        },
      },
      handle: listRules(words),
    }),
    adminRoute({
      method: "POST",
      path,
      summary: `Make a rule by ${by}`,
      action: "policy.put",
      needs: "edit",
      body: words.created,
      answers: {
        201: {
          description: "As created (not created in a dry run)",
          content: [`${schema}Change`],
          headers: { ...version, Location: "Where the rule is" },
        },
      },
      handle: createRuleHandler(words),
    }),
    adminRoute({
      method: "GET",
      path: one,
      summary: `One rule by ${by}`,
      action: "policy.get",
      needs: "read",
      pathParameters: ruleParameters,
      answers: {
        200: { description: "The rule, or why the policy is none", content: [schema], headers: version },
      },
      handle: getRule(words),
    }),
    adminRoute({
      method: "PUT",
      path: one,
      summary: `Change a rule by ${by}`,
      action: "policy.put",
      needs: "edit",
      expects: "or_any",
      pathParameters: ruleParameters,
      body: words.replaced,
      answers: { 200: { ...changed, content: [`${schema}Change`], headers: version } },
      handle: putRule(words),
    }),
    adminRoute({
      method: "DELETE",
      path: one,
      summary: `Delete a rule by ${by}, and with its last rule the policy`,
      action: "policy.delete",
      needs: "edit",
      expects: "or_any",
      pathParameters: ruleParameters,
      answers: {
        200: { description: "What the deletion came to (nothing is deleted in a dry run)", content: ["Change"] },
      },
      handle: deleteRuleHandler,
    }),
  ];
}

/** Routes in the words of others, over the same policies. */
export const facadeRoutes: readonly AdminRoute[] = [
  ...ruleRoutes(dimensionWords, "dimension and tier"),
  ...ruleRoutes(scopeWords, "scope and API"),
  adminRoute({
    method: "GET",
    path: "/api/v1/users/{user_id}/limits",
    summary: "What limits a user, and where each number comes from",
    action: "subject.get",
    needs: "read",
    pathParameters: userParameters,
    answers: {
      200: {
        description: "Also of a user of whom nothing is known",
        content: ["User"],
        headers: { ETag: "The user's version; 0 where nothing is kept" },
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
    summary: "Give a user another limit for a while; it ends by itself",
    action: "subject.override",
    needs: "operate",
    expects: "or_any",
    pathParameters: userParameters,
    body: userOverrideShape,
    answers: {
      201: {
        description: "As in force (unchanged in a dry run)",
        content: ["UserChange"],
        headers: { ETag: "The user's version" },
      },
    },
    handle: createUserOverride,
  }),
];
