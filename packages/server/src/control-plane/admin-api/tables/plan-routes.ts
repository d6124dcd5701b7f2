import { deletePlan, getPlan, listPlans, putPlan } from "../handlers/plans.ts";
import { planShape } from "../plan-shapes.ts";
import { pageQuery } from "../query-parameters.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

const pathParameters = { name: "The plan: the name of a tier" };
const changed = {
  description: "The plan and the policies that changed (unsaved in a dry run)",
  content: ["PlanChange"],
  headers: { ETag: "The plan's version" },
};

export const planRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/plans",
    summary: "List plans: the tiers that policies have windows for, or that subjects have",
    action: "plan.list",
    needs: "read",
    query: pageQuery,
    answers: {
      200: {
        description: "One page",
        content: ["PlanPage"],
        headers: { Link: "The next page, if there is one" },
      },
    },
    handle: listPlans,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/plans/{name}",
    summary: "Show a plan: its windows in every policy, and who has it",
    action: "plan.get",
    needs: "read",
    pathParameters,
    answers: { 200: { description: "The plan", content: ["Plan"], headers: { ETag: "Its version" } } },
    handle: getPlan,
  }),
  adminRoute({
    method: "PUT",
    path: "/api/v1/plans/{name}",
    summary: "Create or replace a plan, in every policy that it concerns, as one change",
    action: "plan.put",
    needs: "edit",
    expects: true,
    pathParameters,
    body: planShape,
    answers: { 200: changed },
    handle: putPlan,
  }),
  adminRoute({
    method: "DELETE",
    path: "/api/v1/plans/{name}",
    summary: "Delete a plan's windows from every policy; subjects keep the tier",
    action: "plan.delete",
    needs: "edit",
    expects: true,
    pathParameters,
    answers: { 200: changed },
    handle: deletePlan,
  }),
];
