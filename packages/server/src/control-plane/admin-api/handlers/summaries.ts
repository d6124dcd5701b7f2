import { knownSubject, policySummary, topSubjects } from "@sluice/protocol/admin";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { SubjectSearch, SummaryRequest, TopSubjectsRequest } from "../../summary-control.ts";
import { answerPage } from "../answer.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

export async function listPolicySummaries(
  { actor, query, url }: AdminRequest<undefined, SummaryRequest>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPage(await control.summaries.policies(actor, query), policySummary.render, url);
}

interface TopParameters extends Omit<TopSubjectsRequest, "fromMs" | "toMs" | "dimension"> {
  readonly dimension?: string;
  readonly from_ms?: number;
  readonly to_ms?: number;
}

export async function listTopSubjects(
  { actor, query }: AdminRequest<undefined, TopParameters>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { from_ms: fromMs, to_ms: toMs, dimension = "tenant", ...rest } = query;
  const found = await control.summaries.topSubjects(actor, { ...rest, dimension, fromMs, toMs });
  return { status: 200, body: topSubjects.render(found) };
}

export async function findSubjects(
  { actor, query, url }: AdminRequest<undefined, Partial<SubjectSearch>>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { prefix = "", ...rest } = query;
  return answerPage(await control.summaries.subjects(actor, { prefix, ...rest }), knownSubject.render, url);
}
