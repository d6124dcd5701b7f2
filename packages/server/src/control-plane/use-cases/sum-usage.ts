import type { OwnedPolicies, StoreView, UsageRow, UsageStep } from "@sluice/sql";
import { invalidField } from "../control-errors.ts";
import { canonicalSubject } from "../documents/canonical-subject.ts";
import type { UsageSumRequest, UsageTotal } from "../usage-control.ts";
import type { ControlContext } from "./control-context.ts";

const stepMs: Readonly<Record<UsageStep, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const maxDays = 366;
const maxPolicies = 100;
/** A period has at most 361 minutes, 337 hours or 367 days. */
const maxRows = maxPolicies * (maxDays + 1);

interface Period {
  readonly step: UsageStep;
  readonly fromMs: number;
  readonly toMs: number;
}

/** What policies decided in a period, for each tracked subject of a request. */
export async function sumUsage(
  view: StoreView,
  request: UsageSumRequest,
  owned: OwnedPolicies | undefined,
  context: ControlContext,
): Promise<readonly UsageTotal[]> {
  const period = readPeriod(request, context.nowMs());
  const subjects = findSubjects(request, context);
  const { policies } = request;
  if (policies.length === 0) return [];
  if (policies.length > maxPolicies)
    throw invalidField(
      ["policy_id"],
      `must be given: ${policies.length} policies apply, and a period is added up for at most ${maxPolicies}`,
    );
  const totals: UsageTotal[] = [];
  for (const subject of subjects) {
    const query = { ...period, ...subject, policies, owned, by: ["policy"], atMost: maxRows } as const;
    totals.push(...addUp(await view.usage(query), { ...subject, fromMs: period.fromMs, toMs: period.toMs }));
  }
  return totals;
}

/** The period in whole steps, long ones for a long period. Minutes are kept for at least two days, hours for longer. */
function readPeriod({ fromMs, toMs }: UsageSumRequest, nowMs: number): Period {
  if (fromMs <= 0) throw invalidField(["from_unix_ms"], "must be above 0 if a period is given");
  if (toMs !== undefined && toMs <= 0) throw invalidField(["to_unix_ms"], "must be above 0, or 0 for now");
  const endMs = toMs ?? nowMs;
  if (fromMs >= endMs)
    throw invalidField(["from_unix_ms"], toMs === undefined ? "must be in the past" : "must be before to_unix_ms");
  const hours = (endMs - fromMs) / stepMs.hour;
  if (hours > maxDays * 24)
    throw invalidField(["from_unix_ms"], `must be at most ${maxDays} days before the end of the period`);
  const hasMinutes = hours <= 6 && fromMs >= nowMs - stepMs.day;
  const step = hasMinutes ? "minute" : hours <= 14 * 24 ? "hour" : "day";
  const length = stepMs[step];
  return { step, fromMs: Math.floor(fromMs / length) * length, toMs: Math.ceil(endMs / length) * length };
}

function findSubjects(
  { dimensions }: UsageSumRequest,
  { usageBy, ipv6PrefixBits }: ControlContext,
): readonly Pick<UsageTotal, "dimension" | "subject">[] {
  if (usageBy.length === 0)
    throw invalidField(["from_unix_ms"], "must be 0: this server keeps no usage history (--usage-by is off)");
  const subjects = usageBy.flatMap((dimension) => {
    const value = Object.hasOwn(dimensions, dimension) ? dimensions[dimension] : undefined;
    return value === undefined ? [] : [{ dimension, subject: canonicalSubject(dimension, value, ipv6PrefixBits) }];
  });
  if (subjects.length > 0) return subjects;
  throw invalidField(["dimensions"], `must have one that usage is kept by (--usage-by): ${usageBy.join(", ")}`);
}

type About = Pick<UsageTotal, "dimension" | "subject" | "fromMs" | "toMs">;

function addUp(rows: readonly UsageRow[], about: About): readonly UsageTotal[] {
  const totals = new Map<string, UsageTotal>();
  for (const { policy = "", ...row } of rows) {
    const sum = totals.get(policy);
    totals.set(policy, {
      ...{ policy, ...about },
      decided: row.decided + (sum?.decided ?? 0),
      allowed: row.allowed + (sum?.allowed ?? 0),
      denied: row.denied + (sum?.denied ?? 0),
      cost: row.cost + (sum?.cost ?? 0),
      degraded: row.degraded + (sum?.degraded ?? 0),
      shadowDenied: row.shadowDenied + (sum?.shadowDenied ?? 0),
    });
  }
  return [...totals.values()];
}
