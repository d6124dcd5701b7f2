import type { KnownSubjectRow, StoreView, UsageStep } from "@sluice/sql";
import { describePolicy } from "sluice/internal";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Listed } from "../change.ts";
import { invalidField } from "../control-errors.ts";
import { policyFromDocument } from "../documents/describe-document.ts";
import type { PolicyControl, StoredPolicy } from "../policy-control.ts";
import type { KnownSubject, PolicySummary, SubjectSearch, SummaryControl, SummaryRequest } from "../summary-control.ts";
import { readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { findHeadroom, type PeaksByStep } from "./find-headroom.ts";
import { findOwned, isOwned } from "./find-owned.ts";
import { parsePageLimit, renderPage } from "./page.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const hours = 24;
/** The most policies or subjects in one answer: each costs the store a few rows. */
const most = 100;
/** The most policies that a search looks at for one answer. */
const maxSearched = 10_000;
const atOnce = 500;

export function createSummaryControl(context: ControlContext, policies: PolicyControl): SummaryControl {
  return {
    async policies(actor, request = {}) {
      const limit = Math.min(most, parsePageLimit(request));
      const found = await findPolicies(policies, actor, request, limit);
      if (found.items.length === 0) return { items: [], next: found.next };
      const owned = findOwned(actor.caller, context);
      const ids = found.items.flatMap((one) => (isOwned(one, owned) ? [one.id] : []));
      const audited = { action: "policy.summary.list", kind: "policy", target: "" };
      return readStore(context, actor, audited, async (view) => {
        const usage = ids.length === 0 ? undefined : await readUsage(view, ids, context.nowMs());
        const items = found.items.map((one) => summarize(one, ids.includes(one.id) ? usage : undefined));
        return { items, next: found.next };
      });
    },

    topSubjects: (actor, { dimension, policy, by = "decided", count = 10, ...period }) =>
      readStore(context, actor, { action: "usage.top.list", kind: "usage", target: "" }, async (view) => {
        const nowMs = context.nowMs();
        const { fromMs = nowMs - dayMs, toMs = nowMs } = period;
        if (fromMs >= toMs) throw invalidField(["from_ms"], "must be before to_ms");
        const step: UsageStep = toMs - fromMs <= 6 * hourMs ? "minute" : toMs - fromMs <= 14 * dayMs ? "hour" : "day";
        const length = { minute: 60_000, hour: hourMs, day: dayMs }[step];
        const whole = { fromMs: Math.floor(fromMs / length) * length, toMs: Math.ceil(toMs / length) * length };
        const owned = findOwned(actor.caller, context);
        const items = await view.topSubjects({ step, ...whole, dimension, policy, owned, by, atMost: count });
        return { dimension, by, step, ...whole, items };
      }),

    subjects: (actor, request) =>
      readStore(context, actor, { action: "subject.find.list", kind: "subject", target: "" }, async (view) => {
        const limit = Math.min(most, parsePageLimit(request));
        const { prefix, dimension } = request;
        const owned = findOwned(actor.caller, context);
        const after = readAfter(request);
        const rows = await view.knownSubjects({ prefix, dimension, after, owned, atMost: limit + 1 });
        return renderPage(
          joinKnown(rows),
          limit,
          ({ dimension: of, value }) => JSON.stringify([of, value]),
          (subject) => subject,
        );
      }),
  };
}

/** A page of policies that match; `next` is the last one that was looked at. */
async function findPolicies(
  policies: PolicyControl,
  actor: Actor,
  { id, owner, search, after }: SummaryRequest,
  limit: number,
): Promise<Listed<StoredPolicy>> {
  if (id !== undefined) return { items: [await policies.get(actor, id)], next: undefined };
  if (search === undefined) return policies.list(actor, { owner, after, limit });
  const wanted = search.toLowerCase();
  const items: StoredPolicy[] = [];
  let cursor = after;
  for (let searched = 0; searched < maxSearched; searched += atOnce) {
    const page = await policies.list(actor, { owner, after: cursor, limit: atOnce });
    for (const policy of page.items) {
      if (!policy.id.toLowerCase().includes(wanted) && !policy.owner?.toLowerCase().includes(wanted)) continue;
      if (items.length === limit) return { items, next: items.at(-1)!.id };
      items.push(policy);
    }
    cursor = page.next;
    if (cursor === undefined) return { items, next: undefined };
  }
  return { items, next: cursor };
}

interface UsageOfPolicies {
  readonly fromMs: number;
  readonly rows: Awaited<ReturnType<StoreView["usage"]>>;
  readonly peaks: PeaksByStep;
}

/** The last 24 hours of policies, and their peaks: those of minutes in the last hour, because a day has too many. */
async function readUsage(view: StoreView, policies: readonly string[], nowMs: number): Promise<UsageOfPolicies> {
  const toMs = Math.floor(nowMs / hourMs) * hourMs + hourMs;
  const fromMs = toMs - hours * hourMs;
  const day = { fromMs: Math.floor(fromMs / dayMs) * dayMs, toMs };
  const atMost = hours * policies.length;
  // The sums of an hour are added up once a minute, and those of the current one are not complete.
  const rows = await view.usage({ step: "hour", fromMs, toMs, policies, by: ["policy"], atMost });
  return {
    fromMs,
    rows,
    peaks: {
      minute: await view.usagePeaks({ step: "minute", fromMs: nowMs - hourMs, toMs, policies }),
      hour: await view.usagePeaks({ step: "hour", fromMs, toMs, policies }),
      day: await view.usagePeaks({ step: "day", ...day, policies }),
    },
  };
}

/** Without usage: it is not for the caller to see. */
function summarize(stored: StoredPolicy, found: UsageOfPolicies | undefined): PolicySummary {
  const { id, version, owner, author, changedMs, rollout, overriddenBy, document } = stored;
  const policy = policyFromDocument(document);
  return {
    ...{ id, version, owner, author, changedMs, rollout, overriddenBy },
    mode: policy?.mode ?? "enforce",
    prose: policy === undefined ? [] : describePolicy(policy),
    usage: found && sumHours(id, found),
    headroom: policy && found && findHeadroom(policy, found.peaks),
  };
}

function sumHours(id: string, { fromMs, rows }: UsageOfPolicies): PolicySummary["usage"] {
  const allowed = new Array<number>(hours).fill(0);
  const denied = new Array<number>(hours).fill(0);
  let shadowDenied = 0;
  for (const row of rows) {
    if (row.policy !== id) continue;
    const hour = (row.startMs - fromMs) / hourMs;
    allowed[hour] = row.allowed;
    denied[hour] = row.denied;
    shadowDenied += row.shadowDenied;
  }
  return { fromMs, stepMs: hourMs, allowed, denied, shadowDenied };
}

function readAfter({ after }: SubjectSearch): { readonly dimension: string; readonly value: string } | undefined {
  if (after === undefined) return undefined;
  try {
    const [dimension, value] = JSON.parse(after) as readonly unknown[];
    if (typeof dimension === "string" && typeof value === "string") return { dimension, value };
  } catch {
    // Answered below.
  }
  throw invalidField(["after"], "must be `next` of the previous page");
}

/** One of each subject, in order. */
function joinKnown(rows: readonly KnownSubjectRow[]): readonly KnownSubject[] {
  const subjects = new Map<string, KnownSubject>();
  for (const { dimension, value, by, seenMs } of rows) {
    const key = JSON.stringify([dimension, value]);
    const known = subjects.get(key);
    const seen = Math.max(known?.seenMs ?? 0, seenMs ?? 0);
    const knownBy = [...(known?.knownBy ?? []), by];
    subjects.set(key, { dimension, value, knownBy, seenMs: seen === 0 ? undefined : seen });
  }
  const order = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
  return [...subjects.values()].sort((a, b) => order(a.dimension, b.dimension) || order(a.value, b.value));
}
