import { keptSubject } from "@sluice/protocol/admin";
import type { StoreChange, SubjectLimitRecord, SubjectRecord } from "@sluice/sql";
import { StoreUnavailable } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import { auditEntry, subjectTarget } from "../audit/audit-entry.ts";
import { notFound } from "../control-errors.ts";
import type { ChangedSubject, SubjectChangeOptions, SubjectControl, SubjectView } from "../control-plane.ts";
import { canonicalSubject } from "../documents/canonical-subject.ts";
import { findOwnLimit, putOwnLimit, putTier } from "../documents/write-subject.ts";
import { commit, look, type Outcome } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { demandEnd, demandForm, demandSubject } from "./demand-subject.ts";
import { effectiveLimit } from "./effective-limits.ts";
import {
  completeView,
  entryInForce,
  type KnownSubject,
  knownOf,
  limitView,
  readKnown,
  viewOf,
} from "./known-subject.ts";
import { limitOf, pageOf } from "./page.ts";
import { resetAction, resetCounters } from "./reset-counters.ts";
import { limitsReplacedBy, readPoliciesInForce, warnInFiles, warnLimit, warnTier } from "./warn-subject.ts";

const kind = "subject";

/** What was there, of what is changed. */
type Replaced = Pick<KnownSubject, "tier" | "limits">;

interface SubjectOutcome extends Omit<Outcome<unknown>, "value"> {
  /** Undefined where nothing was there, or nothing changed. */
  readonly replaced?: Replaced | undefined;
  readonly inPlaceOf?: ChangedSubject<unknown>["inPlaceOf"];
}

export function createSubjectControl(context: ControlContext): SubjectControl {
  /** In the one form that all spellings of a value share. */
  function canonical(dimension: string, written: string): string {
    return canonicalSubject(dimension, written, context.ipv6PrefixBits);
  }

  async function changed(
    actor: Actor,
    word: string,
    dimension: string,
    written: string,
    options: SubjectChangeOptions,
    work: (change: StoreChange, before: KnownSubject, nowMs: number) => Promise<SubjectOutcome>,
  ): Promise<ChangedSubject<SubjectView>> {
    const value = canonical(dimension, written);
    const wish = {
      permission: "operate" as const,
      action: `subject.${word}`,
      kind,
      target: subjectTarget(dimension, value),
      policies: true,
      at: ["subjects", dimension, value],
    };
    const done = await commit(context, actor, wish, options, async (change) => {
      demandSubject(dimension, value);
      const nowMs = context.nowMs();
      const before = await readKnown(change, dimension, value, nowMs);
      demandSeen(before, options.expected);
      const { replaced, inPlaceOf, ...outcome } = await work(change, before, nowMs);
      // Thrown within the change, so that it is undone.
      if (replaced !== undefined && options.expected === undefined) throw conflictOf(before, undefined);
      return { ...outcome, value: { known: await readKnown(change, dimension, value, nowMs), replaced, inPlaceOf } };
    });
    const { known, replaced, inPlaceOf } = done.value;
    return {
      ...done,
      inPlaceOf,
      value: await completeView(context, known),
      replaced: replaced && { tier: replaced.tier, limits: replaced.limits.map(limitView) },
    };
  }

  return {
    async get(actor, dimension, written) {
      const value = canonical(dimension, written);
      const deed = { action: "subject.get", kind, target: subjectTarget(dimension, value) };
      const known = await look(context, actor, deed, async (view) => {
        demandSubject(dimension, value);
        return readKnown(view, dimension, value, context.nowMs());
      });
      return completeView(context, known);
    },

    list: (actor, dimension, query = {}) =>
      look(context, actor, { action: "subject.list", kind, target: dimension }, async (view) => {
        const limit = limitOf(query);
        const records = await view.subjects({ dimension, after: query.after, limit: limit + 1 });
        const known = new Map<SubjectRecord, KnownSubject>();
        for (const record of records.slice(0, limit))
          known.set(record, await knownOf(view, record, dimension, record.value, context.nowMs()));
        return pageOf(
          records,
          limit,
          ({ value }) => value,
          (record) => viewOf(known.get(record)!),
        );
      }),

    setTier: (actor, dimension, written, tier, options = {}) =>
      changed(actor, "tier", dimension, written, options, async (change, { value }, nowMs) => {
        demandForm({ [dimension]: value, ...(tier === undefined ? { tier: "none" } : { tier }) });
        const inForce = tier === undefined ? undefined : await readPoliciesInForce(context, change);
        const warnings = [
          ...warnInFiles(context, dimension, value),
          ...(inForce === undefined || tier === undefined ? [] : warnTier(inForce, dimension, tier)),
        ];
        const { before, after } = await putTier(change, dimension, value, tier, nowMs);
        if (before === after) return { changed: false, warnings };
        return {
          changed: true,
          warnings,
          audit: [{ before: { tier: before }, after: { tier: after } }],
          replaced: before === undefined ? undefined : { tier: before, limits: [] },
        };
      }),

    setLimit: (actor, dimension, written, wish, options = {}) =>
      changed(
        actor,
        wish.untilMs === undefined ? "limit" : "override",
        dimension,
        written,
        options,
        async (change, known, nowMs) => {
          const { value } = known;
          const { policy, limit, windows, untilMs } = wish;
          demandForm({ [dimension]: value, limits: [{ policy, limit, windows }] });
          demandEnd(untilMs, nowMs);
          const record: SubjectLimitRecord = {
            dimension,
            value,
            policy,
            limit: limit ?? "",
            windows: JSON.stringify(windows),
            untilMs,
            reason: options.why ?? "",
            author: actor.caller.name,
            atMs: nowMs,
          };
          const inForce = await readPoliciesInForce(context, change);
          const warnings = [
            ...warnInFiles(context, dimension, value),
            ...warnLimit(inForce, dimension, value, wish, nowMs),
          ];
          const entry = entryInForce(context, known);
          const inPlaceOf = limitsReplacedBy(inForce, dimension, value, wish, nowMs).map((one) =>
            effectiveLimit(one, dimension, entry, nowMs),
          );
          const { before, changed } = await putOwnLimit(change, record, nowMs);
          if (!changed) return { changed, warnings };
          return {
            changed,
            warnings,
            inPlaceOf,
            audit: [{ before: before && auditedLimit(before), after: auditedLimit(record) }],
            replaced: before && { tier: undefined, limits: [before] },
          };
        },
      ),

    deleteLimit: (actor, dimension, written, { kind: which, policy, limit }, options = {}) =>
      changed(
        actor,
        `${which === "custom" ? "limit" : which}_delete`,
        dimension,
        written,
        options,
        async (change, { value, tier, limits }, nowMs) => {
          const before = findOwnLimit(limits, policy, limit ?? "", which);
          if (before === undefined)
            throw notFound(
              `${which === "custom" ? "a limit" : "an override"} of ${dimension} ${value} for ${policy}${limit === undefined ? "" : ` / ${limit}`}`,
            );
          await change.deleteSubjectLimit(dimension, value, policy, limit ?? "", which);
          await putTier(change, dimension, value, tier, nowMs, true);
          return {
            changed: true,
            audit: [{ before: auditedLimit(before) }],
            replaced: { tier: undefined, limits: [before] },
          };
        },
      ),

    async delete(actor, dimension, written, options = {}) {
      const done = await changed(actor, "delete", dimension, written, options, async (change, before) => {
        const { value, version, tier, limits } = before;
        if (version === 0) throw notFound(`${dimension} ${value}`);
        await change.deleteSubject(dimension, value);
        return {
          changed: true,
          audit: [{ before: { tier, limits: limits.map(auditedLimit) } }],
          replaced: tier === undefined && limits.length === 0 ? undefined : { tier, limits },
        };
      });
      return { ...done, value: undefined };
    },

    async reset(actor, dimension, written, options = {}) {
      const { limiter, node } = context;
      const { dryRun = false, why, policy, alsoBy, dimensions, domain } = options;
      const value = canonical(dimension, written);
      const wish = { dimension, value, policy, alsoBy, dimensions, domain };
      const deed = { action: resetAction, kind, target: subjectTarget(dimension, value) };
      // Kept before it is done: nothing is reset unseen. Other nodes find it there, by its generation.
      const done = await commit(
        context,
        actor,
        { ...deed, permission: "operate", policies: false },
        { dryRun, why },
        async () => {
          demandSubject(dimension, value);
          const report = await resetCounters(limiter, wish, { reach: "nothing" });
          const { limits, skipped } = report;
          if (policy !== undefined && limits.length === 0 && skipped.length === 0)
            throw notFound(`a policy ${policy} with a limit by ${dimension}`);
          return { value: report, changed: limits.length > 0, audit: [{ before: { limits, wish, node } }] };
        },
      );
      const { limits } = done.value;
      if (dryRun || limits.length === 0) return done;
      try {
        await resetCounters(limiter, wish);
      } catch (error) {
        if (error instanceof StoreUnavailable) {
          const refused = { outcome: "refused" as const, why: "the counters could not be asked", before: { limits } };
          await context.store.note((note) => note.addAudit([auditEntry(actor, deed, refused, context.nowMs())]));
        }
        throw error;
      }
      return done;
    },
  };
}

/** Throws `version_conflict` where the subject is not at the version that the caller says they saw. */
function demandSeen(known: KnownSubject, expected: SubjectChangeOptions["expected"]): void {
  if (expected === undefined || expected === "any" || expected === known.version) return;
  throw conflictOf(known, expected);
}

function conflictOf(known: KnownSubject, expected: number | undefined): VersionConflict {
  return new VersionConflict(`${known.dimension} ${known.value}`, expected, known.version, {
    current: keptSubject.render(viewOf(known)),
  });
}

function auditedLimit({ policy, limit, windows, untilMs, reason }: SubjectLimitRecord): unknown {
  return { policy, limit: limit === "" ? undefined : limit, windows: JSON.parse(windows), until_ms: untilMs, reason };
}
