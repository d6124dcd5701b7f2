import type { UsageDenialsRow, UsageQuery, UsageRow, UsageStep } from "@sluice/sql";
import { invalidField } from "../control-errors.ts";
import { canonicalSubject } from "../documents/canonical-subject.ts";
import type { UsageControl, UsageRequest, UsageView } from "../usage-control.ts";
import { readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { createUsageTail } from "./control-usage-events.ts";
import { findOwned } from "./find-owned.ts";
import { parsePageLimit, renderPage } from "./page.ts";
import { sumUsage } from "./sum-usage.ts";

const stepMs: Readonly<Record<UsageStep, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const defaultFromMs = stepMs.day;
/** The most denials by reason and window that one page lists. A page with more of them has fewer periods. */
const maxDenials = 20_000;

export function createUsageControl(context: ControlContext): UsageControl {
  return {
    sum: (actor, request) =>
      readStore(context, actor, { action: "usage.get", kind: "usage", target: "" }, (view) =>
        sumUsage(view, request, findOwned(actor.caller, context), context),
      ),

    tail: createUsageTail(context),
    list: (actor, request) =>
      readStore(context, actor, { action: "usage.list", kind: "usage", target: "" }, async (view) => {
        const limit = parsePageLimit(request);
        const query = { ...readRequest(request, limit, context), owned: findOwned(actor.caller, context) };
        const rows = await view.usage(query);
        const shown = rows.slice(0, limit);
        const last = shown.at(-1);
        const denials =
          last === undefined ? [] : await view.usageDenials({ ...query, toMs: last.startMs + 1, atMost: maxDenials });
        const byRow = groupDenials(denials, query);
        const keyOf = (row: UsageRow | UsageDenialsRow): string => JSON.stringify(rowKey(row, query));
        // Both are in the same order, so only the denials of the last period listed may be incomplete.
        const incomplete = denials.length === maxDenials ? shown.map(keyOf).indexOf(keyOf(denials.at(-1)!)) : limit;
        return renderPage(
          rows,
          Math.max(1, Math.min(limit, incomplete)),
          keyOf,
          (row): UsageView => ({ ...row, denials: byRow.get(keyOf(row)) ?? [] }),
        );
      }),
  };
}

function readRequest(request: UsageRequest, limit: number, context: ControlContext): UsageQuery {
  const { step = "hour", by = [], dimension, policy } = request;
  const nowMs = context.nowMs();
  const { fromMs = nowMs - defaultFromMs, toMs = nowMs + stepMs[step] } = request;
  if (fromMs >= toMs) throw invalidField(["from_ms"], "must be before to_ms");
  if (by.includes("subject") && dimension === undefined)
    throw invalidField(["group_by"], "subject needs a dimension, such as dimension=tenant");
  if (request.subject !== undefined && dimension === undefined)
    throw invalidField(["subject"], "needs its dimension, such as dimension=tenant&subject=acme");
  const subject =
    dimension === undefined || request.subject === undefined
      ? undefined
      : canonicalSubject(dimension, request.subject, context.ipv6PrefixBits);
  return {
    ...{ step, fromMs: floor(fromMs, step), toMs, policy, limit: request.ofLimit, dimension, subject },
    by: (["policy", "limit", "subject"] as const).filter((field) => by.includes(field)),
    after: request.after === undefined ? undefined : readAfter(request.after, by.length),
    atMost: limit + 1,
  };
}

function readAfter(after: string, fields: number): NonNullable<UsageQuery["after"]> {
  const [startMs, ...names] = parseList(after);
  const isWhole = typeof startMs === "number" && Number.isSafeInteger(startMs) && startMs % 1_000 === 0;
  if (!isWhole || names.length !== fields || !names.every((name) => typeof name === "string"))
    throw invalidField(["after"], "must be `next` of the previous page, with the same group_by");
  return [startMs, ...(names as string[])];
}

function parseList(text: string): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

function floor(ms: number, step: UsageStep): number {
  return ms - (ms % stepMs[step]);
}

function rowKey(row: UsageRow | UsageDenialsRow, { by }: UsageQuery): readonly unknown[] {
  return [row.startMs, ...by.map((field) => row[field])];
}

function groupDenials(rows: readonly UsageDenialsRow[], query: UsageQuery): ReadonlyMap<string, UsageView["denials"]> {
  const groups = new Map<string, UsageDenialsRow[]>();
  for (const row of rows) {
    const key = JSON.stringify(rowKey(row, query));
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return groups;
}
