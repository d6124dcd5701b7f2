import { described, text } from "sluice/shape";
import { checkShape } from "../../../data-plane/transports/http/check-body.ts";
import { wholeNumber } from "../../../data-plane/transports/http/read-query.ts";
import {
  createPolicy,
  deletePolicy,
  diffPolicy,
  explainCheck,
  getPolicy,
  getVersion,
  listPolicies,
  listVersions,
  putPolicy,
  revertPolicy,
  validatePolicy,
} from "../handlers/policies.ts";
import { policyShape, revertShape } from "../policy-shapes.ts";
import { maxVersion, pageQuery } from "../query-parameters.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

/** Enough for a policy with long lists of values. */
const maxPolicyBytes = 1024 * 1024;

const version = wholeNumber({ min: 1, max: maxVersion });
const id = { id: "The policy's id" };
const saved = {
  description: "The saved policy (unsaved in a dry run)",
  content: ["PolicyChange"],
  headers: { ETag: "Its version" },
};

export const policyRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/policies",
    summary: "List policies, ordered by id",
    action: "policy.list",
    needs: "read",
    query: { owner: described(text({ max: 256 }), "Only those of this team"), ...pageQuery },
    answers: { 200: page("PolicyPage") },
    handle: listPolicies,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/policies",
    summary: "Create a policy",
    action: "policy.put",
    needs: "edit",
    expects: true,
    body: policyShape,
    bodyTypes: ["json", "yaml"],
    maxBodyBytes: maxPolicyBytes,
    answers: { 201: { ...saved, headers: { ...saved.headers, Location: "The path of the policy" } } },
    handle: createPolicy,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/policies/validate",
    summary: "Validate a policy against those in the store, and list problems and warnings; nothing is saved",
    action: "policy.validate.get",
    needs: "read",
    access: "read",
    body: policyShape,
    bodyTypes: ["json", "yaml"],
    maxBodyBytes: maxPolicyBytes,
    answers: { 200: { description: "All problems and warnings", content: ["Validation"] } },
    handle: validatePolicy,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/explain",
    summary: "Explain how the node that answers would decide a request, and why; nothing is charged",
    action: "policy.explain.get",
    needs: "read",
    access: "read",
    body: checkShape,
    answers: { 200: { description: "The decision, and how it comes about", content: ["Explanation"] } },
    handle: explainCheck,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/policies/{id}",
    summary: "Show the current version of a policy",
    action: "policy.get",
    needs: "read",
    pathParameters: id,
    answers: { 200: { description: "The policy", content: ["Policy"], headers: { ETag: "Its version" } } },
    handle: getPolicy,
  }),
  adminRoute({
    method: "PUT",
    path: "/api/v1/policies/{id}",
    summary: "Create or replace a policy",
    action: "policy.put",
    needs: "edit",
    expects: true,
    pathParameters: id,
    body: policyShape,
    bodyTypes: ["json", "yaml"],
    maxBodyBytes: maxPolicyBytes,
    answers: { 200: saved, 201: { ...saved, headers: { ...saved.headers, Location: "The path of the policy" } } },
    handle: putPolicy,
  }),
  adminRoute({
    method: "DELETE",
    path: "/api/v1/policies/{id}",
    summary: "Delete a policy; its versions are kept",
    action: "policy.delete",
    needs: "edit",
    expects: true,
    pathParameters: id,
    answers: {
      200: { description: "The outcome of the deletion (nothing is deleted in a dry run)", content: ["Change"] },
    },
    handle: deletePolicy,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/policies/{id}/versions",
    summary: "List the versions of a policy, newest first",
    action: "policy.versions.list",
    needs: "read",
    pathParameters: id,
    query: pageQuery,
    answers: { 200: page("VersionPage") },
    handle: listVersions,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/policies/{id}/versions/{version}",
    summary: "Show one version of a policy, as it was written",
    action: "policy.versions.get",
    needs: "read",
    pathParameters: { ...id, version: "Its number" },
    answers: { 200: { description: "The version", content: ["Version"], headers: { ETag: "Its number" } } },
    handle: getVersion,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/policies/{id}/diff",
    summary: "Compare two versions of a policy",
    action: "policy.diff.get",
    needs: "read",
    pathParameters: id,
    query: {
      from: described(wholeNumber({ min: 0, max: maxVersion }), "Default: the version before `to`. 0: an empty policy"),
      to: described(version, "Default: the current version"),
    },
    answers: { 200: { description: "The changes as data, and line by line", content: ["Diff"] } },
    handle: diffPolicy,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/policies/{id}/revert",
    summary: "Create a new version with the content of an earlier one",
    action: "policy.revert",
    needs: "edit",
    expects: true,
    pathParameters: id,
    body: revertShape,
    answers: { 200: saved },
    handle: revertPolicy,
  }),
];

function page(name: string): AdminRoute["answers"][number] {
  return { description: "One page", content: [name], headers: { Link: "The next page, if there is one" } };
}
