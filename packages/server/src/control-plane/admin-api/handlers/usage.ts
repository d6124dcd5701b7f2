import { denial, renderDenialCsv, renderUsageCsv, usageEvents, usagePeriod } from "@sluice/protocol/admin";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { DenialRequest } from "../../denial-control.ts";
import type { UsageRequest, UsageTailRequest } from "../../usage-control.ts";
import { answerCsv, answerPage } from "../answer.ts";
import type { AdminContext, AdminRequest } from "../route.ts";
import { wantsCsv } from "../wants-csv.ts";

interface HistoryParameters {
  readonly from_ms?: number;
  readonly to_ms?: number;
  readonly limit_name?: string;
  readonly format?: "json" | "csv";
}

interface UsageParameters
  extends HistoryParameters,
    Pick<UsageRequest, "step" | "policy" | "dimension" | "subject" | "limit" | "after"> {
  readonly group_by?: NonNullable<UsageRequest["by"]>;
}

export async function listUsage(
  { actor, query, url, headers }: AdminRequest<undefined, UsageParameters>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { from_ms: fromMs, to_ms: toMs, group_by: by, limit_name: ofLimit, format, ...rest } = query;
  const page = await control.usage.list(actor, { ...rest, fromMs, toMs, by, ofLimit });
  return wantsCsv(format, headers)
    ? answerCsv(page, (items) => renderUsageCsv(items.map(usagePeriod.render)), url)
    : answerPage(page, usagePeriod.render, url);
}

interface UsageEventParameters extends Pick<UsageTailRequest, "after" | "policy" | "subject"> {
  readonly wait_ms?: number;
}

export async function listUsageEvents(
  { actor, query }: AdminRequest<undefined, UsageEventParameters>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { wait_ms: waitMs = 0, ...rest } = query;
  return { status: 200, body: usageEvents.render(await control.usage.tail(actor, { ...rest, waitMs })) };
}

interface DenialParameters
  extends HistoryParameters,
    Pick<DenialRequest, "policy" | "dimension" | "subject" | "limit" | "after"> {}

export async function listDenials(
  { actor, query, url, headers }: AdminRequest<undefined, DenialParameters>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { from_ms: fromMs, to_ms: toMs, limit_name: ofLimit, format, ...rest } = query;
  const page = await control.denials.list(actor, { ...rest, fromMs, toMs, ofLimit });
  if (wantsCsv(format, headers)) return answerCsv(page, (items) => renderDenialCsv(items.map(denial.render)), url);
  const { denials, mixed } = page;
  const answer = answerPage(page, denial.render, url);
  return { ...answer, body: { ...(answer.body as object), denials, mixed } };
}
