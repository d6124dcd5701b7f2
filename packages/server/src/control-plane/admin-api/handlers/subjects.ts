import {
  keptSubject,
  subject,
  subjectChange,
  subjectDeletion,
  subjectReset,
  subjectUsage,
  type ViewOf,
} from "@sluice/protocol/admin";
import { type Problem, SluiceError } from "sluice";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { ChangedSubject, SubjectChangeOptions, SubjectView } from "../../subject-control.ts";
import { answerPage, answerVersion, changeView, renderEtag } from "../answer.ts";
import { renameProblems } from "../rename-problems.ts";
import type { AdminContext, AdminRequest } from "../route.ts";
import type { BlockBody, OverrideBody, ResetBody, SubjectLimitBody } from "../subject-shapes.ts";

interface ListQuery {
  readonly limit?: number;
  readonly after?: string;
  readonly tier?: string;
}

export async function listSubjects(
  { actor, params, query, url }: AdminRequest<undefined, ListQuery>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPage(await control.subjects.list(actor, params.kind!, query), keptSubject.render, url);
}

export async function getSubject({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const view = await control.subjects.get(actor, params.kind!, params.id!);
  return answerVersion(subject.render(view), view.version);
}

/** The state of the counters of those limits that this dimension alone identifies. */
export async function getUsage({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const { dimension, value, effective } = await control.subjects.get(actor, params.kind!, params.id!);
  const limits = effective.filter(({ usage }) => usage !== undefined);
  return { status: 200, body: subjectUsage.render({ dimension, value, limits }) };
}

function changeOptions<B, Q>({ change, anyVersion }: AdminRequest<B, Q>): SubjectChangeOptions {
  return anyVersion ? { ...change, expected: "any" } : change;
}

export async function deleteSubject(request: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const { actor, params } = request;
  const changed = await control.subjects.delete(actor, params.kind!, params.id!, changeOptions(request));
  return { status: 200, body: subjectDeletion.render(subjectChangeView(changed)) };
}

/** The outcome of a change to a subject, with the values that it replaced. */
function subjectChangeView(changed: ChangedSubject<unknown>): ViewOf<typeof subjectDeletion> {
  return { ...changeView(changed), replaced: changed.replaced, inPlaceOf: changed.inPlaceOf };
}

function answerSubject(changed: ChangedSubject<SubjectView>): HttpResponse {
  return {
    status: 200,
    headers: { etag: renderEtag(changed.value.version) },
    body: subjectChange.render({ ...subjectChangeView(changed), subject: changed.value }),
  };
}

export async function setTier(
  request: AdminRequest<{ readonly tier: string }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { actor, params, body } = request;
  return answerSubject(
    await control.subjects.setTier(actor, params.kind!, params.id!, body.tier, changeOptions(request)),
  );
}

export async function deleteTier(request: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const { actor, params } = request;
  return answerSubject(
    await control.subjects.setTier(actor, params.kind!, params.id!, undefined, changeOptions(request)),
  );
}

/** PUT …/limits: without an end. */
export async function setLimits(
  request: AdminRequest<SubjectLimitBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { actor, params, body } = request;
  const { policy, limit, windows } = body;
  const own = { policy, limit, windows };
  const wanted = control.subjects.setLimit(actor, params.kind!, params.id!, own, changeOptions(request));
  return answerSubject(await renameProblems(wanted, (path) => withoutPolicy(path, policy)));
}

/** PUT …/override: until it ends automatically. */
export async function setOverride(
  request: AdminRequest<OverrideBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { actor, params, body } = request;
  const { policy, limit, windows, until_ms: untilMs, for_ms: forMs } = body;
  const override = { policy, limit, windows, untilMs: untilMs ?? Date.now() + forMs! };
  const wanted = control.subjects.setLimit(actor, params.kind!, params.id!, override, changeOptions(request));
  return answerSubject(await renameProblems(wanted, (path) => withoutPolicy(path, policy)));
}

/** In the store as a whole, a limit is found under the id of its policy. */
function withoutPolicy(path: Problem["path"], policy: string): Problem["path"] {
  return path.length > 1 && path[0] === policy ? path.slice(1) : path;
}

/**
 * DELETE …/limits and …/override: each deletes only its own kind, so that a limit is never mistaken for an override.
 */
export function deleteLimit(kind: "custom" | "override") {
  return async (
    request: AdminRequest<undefined, { readonly policy?: string; readonly limit?: string }>,
    { control }: AdminContext,
  ): Promise<HttpResponse> => {
    const { actor, params, query } = request;
    const { policy, limit } = query;
    if (policy === undefined)
      throw new SluiceError("invalid_request", "the query does not name a policy", [
        { path: ["policy"], message: "is missing; it names the policy whose limit to delete" },
      ]);
    const which = { kind, policy, limit };
    return answerSubject(
      await control.subjects.deleteLimit(actor, params.kind!, params.id!, which, changeOptions(request)),
    );
  };
}

/** PUT …/block: until it ends automatically. */
export async function blockSubject(request: AdminRequest<BlockBody>, { control }: AdminContext): Promise<HttpResponse> {
  const { actor, params, body } = request;
  const { policies, until_ms: untilMs, for_ms: forMs } = body;
  const block = { policies, untilMs: untilMs ?? Date.now() + forMs! };
  return answerSubject(await control.subjects.block(actor, params.kind!, params.id!, block, changeOptions(request)));
}

export async function unblockSubject(request: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const { actor, params } = request;
  return answerSubject(await control.subjects.unblock(actor, params.kind!, params.id!, changeOptions(request)));
}

/** POST …/reset: resets counters; limits and tier stay. */
export async function resetSubject(
  { actor, params, body, change }: AdminRequest<ResetBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { policy, dimensions, also_by: alsoBy } = body;
  const { dryRun = false, why } = change;
  const options = { dryRun, why, policy, dimensions, alsoBy };
  const done = await control.subjects.reset(actor, params.kind!, params.id!, options);
  return { status: 200, body: subjectReset.render({ ...changeView(done), ...done.value }) };
}
