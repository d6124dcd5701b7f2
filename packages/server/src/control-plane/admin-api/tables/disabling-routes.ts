import { disableShape } from "../disable-shape.ts";
import { disablePolicy, enablePolicy, listDisabled } from "../handlers/disabling.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

const pathParameters = { id: "The policy's id; also one of a policy file, or `default`" };
const changed = { description: "How the policy is disabled (unsaved in a dry run)", content: ["DisablingChange"] };

export const disablingRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/disabled",
    summary: "List policies that are disabled for a time",
    action: "policy.disabled.list",
    needs: "read",
    answers: { 200: { description: "All of them, by policy", content: ["DisabledPolicies"] } },
    handle: listDisabled,
  }),
  adminRoute({
    method: "PUT",
    path: "/api/v1/policies/{id}/disable",
    summary: "Disable a policy for a time: it limits nothing, on any node",
    action: "policy.disable",
    needs: "operate",
    pathParameters,
    body: disableShape,
    answers: { 200: changed },
    handle: disablePolicy,
  }),
  adminRoute({
    method: "DELETE",
    path: "/api/v1/policies/{id}/disable",
    summary: "Enable a policy that is disabled",
    action: "policy.enable",
    needs: "operate",
    pathParameters,
    answers: { 200: changed },
    handle: enablePolicy,
  }),
];
