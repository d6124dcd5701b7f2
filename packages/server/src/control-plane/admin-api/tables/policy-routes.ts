import { described, text } from "sluice";
import { wholeNumber } from "../../../data-plane/transports/http/read-query.ts";
import {
  createPolicy,
  deletePolicy,
  diffPolicy,
  getPolicy,
  getVersion,
  listPolicies,
  listVersions,
  putPolicy,
  revertPolicy,
  validatePolicy,
} from "../handlers/policies.ts";
import { policyShape, revertShape } from "../policy-shapes.ts";
import { maxVersion, pageQuery } from "../query-words.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

/** Enough for a policy with long lists of values. */
const maxPolicyBytes = 1024 * 1024;

const version = wholeNumber({ min: 1, max: maxVersion });
const id = { id: "The policy's id" };
const kept = {
  description: "The saved policy (unsaved in a dry run)",
  content: ["PolicyChange"],
  headers: { ETag: "Its version" },
};

export const policyRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/policies",
    summary: "List policies, in order of their ids",
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
    answers: { 201: { ...kept, headers: { ...kept.headers, Location: "Where it is" } } },
    handle: createPolicy,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/policies/validate",
    summary: "Check a policy against those in the store: what is wrong, and what may surprise; nothing is saved",
    action: "policy.validate.get",
    needs: "read",
    access: "read",
    body: policyShape,
    bodyTypes: ["json", "yaml"],
    maxBodyBytes: maxPolicyBytes,
    answers: { 200: { description: "Everything that is wrong with it", content: ["Validation"] } },
    handle: validatePolicy,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/policies/{id}",
    summary: "A policy as it is now",
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
    answers: { 200: kept, 201: { ...kept, headers: { ...kept.headers, Location: "Where it is" } } },
    handle: putPolicy,
  }),
  adminRoute({
    method: "DELETE",
    path: "/api/v1/policies/{id}",
    summary: "Delete a policy; its versions stay",
    action: "policy.delete",
    needs: "edit",
    expects: true,
    pathParameters: id,
    answers: {
      200: { description: "What the deletion came to (nothing is deleted in a dry run)", content: ["Change"] },
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
    summary: "One version of a policy, as it was written",
    action: "policy.versions.get",
    needs: "read",
    pathParameters: { ...id, version: "Its number" },
    answers: { 200: { description: "The version", content: ["Version"], headers: { ETag: "Its number" } } },
    handle: getVersion,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/policies/{id}/diff",
    summary: "What changed from one version to another",
    action: "policy.diff.get",
    needs: "read",
    pathParameters: id,
    query: {
      from: described(wholeNumber({ min: 0, max: maxVersion }), "Left out: the version before `to`; 0: nothing"),
      to: described(version, "Left out: the current one"),
    },
    answers: { 200: { description: "As data, and line by line", content: ["Diff"] } },
    handle: diffPolicy,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/policies/{id}/revert",
    summary: "Make a new version with the words of an earlier one",
    action: "policy.revert",
    needs: "edit",
    expects: true,
    pathParameters: id,
    body: revertShape,
    answers: { 200: kept },
    handle: revertPolicy,
  }),
];

function page(name: string): AdminRoute["answers"][number] {
  return { description: "One page", content: [name], headers: { Link: "The next page, if there is one" } };
}
