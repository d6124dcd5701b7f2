import { policy, policyChange, policyDiff, policyValidation, version } from "@sluice/protocol/admin";
import { explanation } from "@sluice/protocol/http";
import { type CheckRequest, SluiceError } from "sluice";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { Changed } from "../../change.ts";
import { describeDocument } from "../../documents/describe-document.ts";
import type { PolicyControl, StoredPolicy } from "../../policy-control.ts";
import { answerPage, answerVersion, changeBody, changeView, problemBodies, renderEtag } from "../answer.ts";
import type { PolicyRequest } from "../policy-shapes.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

type ListQuery = NonNullable<Parameters<PolicyControl["list"]>[1]>;

export async function listPolicies(
  { actor, query, url }: AdminRequest<undefined, ListQuery>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPage(await control.policies.list(actor, query), policy.render, url);
}

export async function getPolicy({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const stored = await control.policies.get(actor, params.id!);
  return answerVersion(policy.render(stored), stored.version);
}

/** POST /api/v1/policies: creates a policy, by the id in its document. */
export async function createPolicy(request: AdminRequest<PolicyRequest>, context: AdminContext): Promise<HttpResponse> {
  const { document } = request.body;
  if (typeof document.id !== "string" || document.id === "")
    throw new SluiceError("invalid_request", "the policy has no id", [
      { path: ["id"], message: "is missing; it names the policy" },
    ]);
  const { expected = 0 } = request.change;
  return keep({ ...request, change: { ...request.change, expected } }, document.id, context);
}

export function putPolicy(request: AdminRequest<PolicyRequest>, context: AdminContext): Promise<HttpResponse> {
  return keep(request, request.params.id!, context);
}

async function keep(
  { actor, body, change, placed }: AdminRequest<PolicyRequest>,
  id: string,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { document, rollout } = body;
  const changed = await control.policies.put(actor, id, document, { ...change, rollout });
  // A caller that names no version may not change an existing policy.
  return answerPolicy(
    { ...changed, warnings: await placed(changed.warnings) },
    (change.expected ?? 0) === 0 ? 201 : 200,
  );
}

function answerPolicy(changed: Changed<StoredPolicy>, status: 200 | 201): HttpResponse {
  const { value } = changed;
  const location = status === 201 ? { location: `/api/v1/policies/${encodeURIComponent(value.id)}` } : {};
  return {
    status,
    headers: { etag: renderEtag(value.version), ...location },
    body: policyChange.render({ ...changeView(changed), policy: value }),
  };
}

export async function deletePolicy(
  { actor, params, change }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return { status: 200, body: changeBody(await control.policies.delete(actor, params.id!, change)) };
}

export async function listVersions(
  { actor, params, query, url }: AdminRequest<undefined, { readonly limit?: number; readonly after?: string }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPage(await control.policies.versions(actor, params.id!, query), version.render, url);
}

export async function getVersion({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const stored = await control.policies.version(actor, params.id!, readVersion(params.version!));
  return answerVersion(version.render(stored), stored.version);
}

function readVersion(digits: string): number {
  if (/^[1-9]\d{0,14}$/.test(digits)) return Number(digits);
  throw new SluiceError("invalid_request", "the path names no version", [
    { path: ["version"], message: `must be a whole number of at least 1, but is ${JSON.stringify(digits)}` },
  ]);
}

export async function diffPolicy(
  { actor, params, query }: AdminRequest<undefined, { readonly from?: number; readonly to?: number }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return { status: 200, body: policyDiff.render(await control.policies.diff(actor, params.id!, query.from, query.to)) };
}

export async function revertPolicy(
  {
    actor,
    params,
    body,
    change,
  }: AdminRequest<{ readonly version: number; readonly rollout?: PolicyRequest["rollout"] }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { version: earlier, rollout } = body;
  return answerPolicy(await control.policies.revert(actor, params.id!, earlier, { ...change, rollout }), 200);
}

/** POST /api/v1/policies/validate: problems are the answer, and not an error. */
export async function validatePolicy(
  { actor, body, placed }: AdminRequest<PolicyRequest>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { problems, warnings } = await control.policies.validate(actor, body.document);
  return {
    status: 200,
    body: policyValidation.render({
      valid: problems.length === 0,
      problems: problemBodies(await placed(problems)),
      warnings: problemBodies(await placed(warnings)),
      prose: problems.length === 0 ? describeDocument(body.document) : undefined,
    }),
  };
}

/** POST /api/v1/explain: how the answer to a check would come about, on this node. */
export async function explainCheck(
  { actor, body }: AdminRequest<CheckRequest>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return { status: 200, body: explanation.render(await control.policies.explain(actor, body)) };
}
