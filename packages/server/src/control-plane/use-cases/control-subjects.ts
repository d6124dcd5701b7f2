import { isDeepStrictEqual } from "node:util";
import { keptSubject } from "@sluice/protocol/admin";
import type { BlockRecord, StoreChange, SubjectLimitRecord, SubjectRecord } from "@sluice/sql";
import { StoreUnavailable } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import { auditEntry, subjectTarget } from "../audit/audit-entry.ts";
import type { Changed, Listed, PageQuery } from "../change.ts";
import { invalidField, notFound } from "../control-errors.ts";
import { canonicalSubject } from "../documents/canonical-subject.ts";
import { findOwnLimit, putOwnLimit, putTier } from "../documents/write-subject.ts";
import type {
  ChangedSubject,
  ResetOptions,
  ResetReport,
  StoredSubject,
  SubjectBlockRequest,
  SubjectChangeOptions,
  SubjectControl,
  SubjectLimitChoice,
  SubjectLimitRequest,
  SubjectView,
} from "../subject-control.ts";
import { commit, type Outcome, readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { effectiveLimit } from "./effective-limits.ts";
import { parsePageLimit, renderPage } from "./page.ts";
import { requireEnd, requireForm, requireSubject } from "./require-subject.ts";
import { resetAction, resetCounters } from "./reset-counters.ts";
import {
  blockView,
  completeView,
  entryInForce,
  limitView,
  readSubject,
  renderSubject,
  type SubjectState,
  subjectFromRecord,
} from "./subject-state.ts";
import { limitsReplacedBy, readPoliciesInForce, warnBlock, warnInFiles, warnLimit, warnTier } from "./warn-subject.ts";

const kind = "subject";

/** The values that a change replaces. */
type Replaced = Pick<SubjectState, "tier" | "limits"> & Partial<Pick<SubjectState, "block">>;

interface SubjectOutcome extends Omit<Outcome<unknown>, "value"> {
  /** Undefined if there was none, or nothing changed. */
  readonly replaced?: Replaced | undefined;
  readonly inPlaceOf?: ChangedSubject<unknown>["inPlaceOf"];
}

/** The subject and the actor of a change. */
interface SubjectChange {
  readonly actor: Actor;
  /** The action in the audit, after `subject.`. */
  readonly word: string;
  readonly dimension: string;
  /** The value as the caller spells it. */
  readonly written: string;
  readonly options: SubjectChangeOptions;
}

export function createSubjectControl(context: ControlContext): SubjectControl {
  return new StoredSubjects(context);
}

/** Values are stored in the canonical form that all spellings share. Every change goes through `#change`. */
class StoredSubjects implements SubjectControl {
  readonly #context: ControlContext;

  constructor(context: ControlContext) {
    this.#context = context;
  }

  async get(actor: Actor, dimension: string, written: string): Promise<SubjectView> {
    const value = this.#canonical(dimension, written);
    const audited = { action: "subject.get", kind, target: subjectTarget(dimension, value) };
    const state = await readStore(this.#context, actor, audited, async (view) => {
      requireSubject(dimension, value);
      return readSubject(view, dimension, value, this.#context.nowMs());
    });
    return completeView(this.#context, state);
  }

  list(
    actor: Actor,
    dimension: string,
    query: PageQuery & { readonly tier?: string | undefined } = {},
  ): Promise<Listed<StoredSubject>> {
    const audited = { action: "subject.list", kind, target: dimension };
    return readStore(this.#context, actor, audited, async (view) => {
      const limit = parsePageLimit(query);
      const records = await view.subjects({ dimension, tier: query.tier, after: query.after, limit: limit + 1 });
      const states = new Map<SubjectRecord, SubjectState>();
      for (const record of records.slice(0, limit))
        states.set(record, await subjectFromRecord(view, record, dimension, record.value, this.#context.nowMs()));
      return renderPage(
        records,
        limit,
        ({ value }) => value,
        (record) => renderSubject(states.get(record)!),
      );
    });
  }

  setTier(
    actor: Actor,
    dimension: string,
    written: string,
    tier: string | undefined,
    options: SubjectChangeOptions = {},
  ): Promise<ChangedSubject<SubjectView>> {
    return this.#change({ actor, word: "tier", dimension, written, options }, async (change, { value }, nowMs) => {
      requireForm({ [dimension]: value, ...(tier === undefined ? { tier: "none" } : { tier }) });
      const inForce = tier === undefined ? undefined : await readPoliciesInForce(this.#context, change);
      const warnings = [
        ...warnInFiles(this.#context, dimension, value),
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
    });
  }

  setLimit(
    actor: Actor,
    dimension: string,
    written: string,
    request: SubjectLimitRequest,
    options: SubjectChangeOptions = {},
  ): Promise<ChangedSubject<SubjectView>> {
    const { policy, limit, windows, untilMs } = request;
    const word = untilMs === undefined ? "limit" : "override";
    return this.#change({ actor, word, dimension, written, options }, async (change, state, nowMs) => {
      const { value } = state;
      requireForm({ [dimension]: value, limits: [{ policy, limit, windows }] });
      requireEnd(untilMs, nowMs);
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
      const inForce = await readPoliciesInForce(this.#context, change);
      const warnings = [
        ...warnInFiles(this.#context, dimension, value),
        ...warnLimit(inForce, dimension, value, request, nowMs),
      ];
      const entry = entryInForce(this.#context, state);
      const inPlaceOf = limitsReplacedBy(inForce, dimension, value, request, nowMs).map((one) =>
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
    });
  }

  deleteLimit(
    actor: Actor,
    dimension: string,
    written: string,
    { kind: which, policy, limit }: SubjectLimitChoice,
    options: SubjectChangeOptions = {},
  ): Promise<ChangedSubject<SubjectView>> {
    const word = which === "custom" ? "limit_delete" : "override_delete";
    return this.#change({ actor, word, dimension, written, options }, async (change, state, nowMs) => {
      const { value, tier, limits } = state;
      const before = findOwnLimit(limits, policy, limit ?? "", which);
      if (before === undefined) {
        const what = which === "custom" ? "a limit" : "an override";
        throw notFound(`${what} of ${dimension} ${value} for ${policy}${limit === undefined ? "" : ` / ${limit}`}`);
      }
      await change.deleteSubjectLimit(dimension, value, policy, limit ?? "", which);
      await putTier(change, dimension, value, tier, nowMs, true);
      return {
        changed: true,
        audit: [{ before: auditedLimit(before) }],
        replaced: { tier: undefined, limits: [before] },
      };
    });
  }

  block(
    actor: Actor,
    dimension: string,
    written: string,
    { untilMs, policies = [] }: SubjectBlockRequest,
    options: SubjectChangeOptions = {},
  ): Promise<ChangedSubject<SubjectView>> {
    return this.#change({ actor, word: "block", dimension, written, options }, async (change, state, nowMs) => {
      const { value, tier, block: before } = state;
      const reason = (options.why ?? "").trim();
      if (reason === "") throw invalidField(["why"], "is missing: say why the subject should be kept out");
      requireEnd(untilMs, nowMs);
      const author = actor.caller.name;
      const only = [...new Set(policies)];
      const record: BlockRecord = { dimension, value, policies: only, untilMs, reason, author, atMs: nowMs };
      const warnings = warnBlock(await readPoliciesInForce(this.#context, change), only);
      if (before?.untilMs === untilMs && before.reason === reason && isDeepStrictEqual(before.policies, only))
        return { changed: false, warnings };
      await change.putBlock(record);
      await putTier(change, dimension, value, tier, nowMs, true);
      return {
        changed: true,
        warnings,
        audit: [{ before: before && blockView(before), after: blockView(record) }],
        replaced: before && { tier: undefined, limits: [], block: before },
      };
    });
  }

  unblock(
    actor: Actor,
    dimension: string,
    written: string,
    options: SubjectChangeOptions = {},
  ): Promise<ChangedSubject<SubjectView>> {
    return this.#change({ actor, word: "unblock", dimension, written, options }, async (change, state, nowMs) => {
      const { value, tier, block: before } = state;
      // Even if it has ended by this clock: nodes may still obey it by theirs.
      const wasThere = await change.deleteBlock(dimension, value);
      if (!wasThere) throw notFound(`a block of ${dimension} ${value}`);
      await putTier(change, dimension, value, tier, nowMs, true);
      return {
        changed: true,
        audit: [{ before: before && blockView(before) }],
        replaced: before && { tier: undefined, limits: [], block: before },
      };
    });
  }

  async delete(
    actor: Actor,
    dimension: string,
    written: string,
    options: SubjectChangeOptions = {},
  ): Promise<ChangedSubject<undefined>> {
    const done = await this.#change({ actor, word: "delete", dimension, written, options }, async (change, before) => {
      const { value, version, tier, limits, block } = before;
      if (version === 0 && block === undefined) throw notFound(`${dimension} ${value}`);
      await change.deleteSubject(dimension, value);
      await change.deleteBlock(dimension, value);
      return {
        changed: true,
        audit: [{ before: { tier, limits: limits.map(auditedLimit), block: block && blockView(block) } }],
        replaced:
          tier === undefined && limits.length === 0 && block === undefined ? undefined : { tier, limits, block },
      };
    });
    return { ...done, value: undefined };
  }

  async reset(
    actor: Actor,
    dimension: string,
    written: string,
    options: ResetOptions = {},
  ): Promise<Changed<ResetReport>> {
    const { limiter, node, store, nowMs } = this.#context;
    const { dryRun = false, why, policy, alsoBy, dimensions, domain } = options;
    const value = this.#canonical(dimension, written);
    const request = { dimension, value, policy, alsoBy, dimensions, domain };
    const audited = { action: resetAction, kind, target: subjectTarget(dimension, value) };
    const commitRequest = { ...audited, permission: "operate" as const, policies: false };
    // Audited before it is done: nothing is reset unrecorded. Other nodes find it there, by its generation.
    const done = await commit(this.#context, actor, commitRequest, { dryRun, why }, async () => {
      requireSubject(dimension, value);
      const report = await resetCounters(limiter, request, { reach: "nothing" });
      const { limits, skipped } = report;
      if (policy !== undefined && limits.length === 0 && skipped.length === 0)
        throw notFound(`a policy ${policy} with a limit by ${dimension}`);
      return { value: report, changed: limits.length > 0, audit: [{ before: { limits, wish: request, node } }] };
    });
    const { limits } = done.value;
    if (dryRun || limits.length === 0) return done;
    try {
      await resetCounters(limiter, request);
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        const refused = { outcome: "refused" as const, why: "the counters are unavailable", before: { limits } };
        await store.note((note) => note.addAudit([auditEntry(actor, audited, refused, nowMs())]));
      }
      throw error;
    }
    return done;
  }

  async #change(
    { actor, word, dimension, written, options }: SubjectChange,
    work: (change: StoreChange, before: SubjectState, nowMs: number) => Promise<SubjectOutcome>,
  ): Promise<ChangedSubject<SubjectView>> {
    const context = this.#context;
    const value = this.#canonical(dimension, written);
    const request = {
      permission: "operate" as const,
      action: `subject.${word}`,
      kind,
      target: subjectTarget(dimension, value),
      policies: true,
      at: ["subjects", dimension, value],
    };
    const done = await commit(context, actor, request, options, async (change) => {
      requireSubject(dimension, value);
      const nowMs = context.nowMs();
      const before = await readSubject(change, dimension, value, nowMs);
      requireExpected(before, options.expected);
      const { replaced, inPlaceOf, ...outcome } = await work(change, before, nowMs);
      // Thrown within the change, so that it is undone.
      if (replaced !== undefined && options.expected === undefined) throw createConflict(before, undefined);
      return { ...outcome, value: { state: await readSubject(change, dimension, value, nowMs), replaced, inPlaceOf } };
    });
    const { state, replaced, inPlaceOf } = done.value;
    return {
      ...done,
      inPlaceOf,
      value: await completeView(context, state),
      replaced: replaced && {
        tier: replaced.tier,
        limits: replaced.limits.map(limitView),
        block: replaced.block && blockView(replaced.block),
      },
    };
  }

  #canonical(dimension: string, written: string): string {
    return canonicalSubject(dimension, written, this.#context.ipv6PrefixBits);
  }
}

/** Throws `version_conflict` if the subject is not at the version that the caller saw. */
function requireExpected(known: SubjectState, expected: SubjectChangeOptions["expected"]): void {
  if (expected === undefined || expected === "any" || expected === known.version) return;
  throw createConflict(known, expected);
}

function createConflict(known: SubjectState, expected: number | undefined): VersionConflict {
  return new VersionConflict(`${known.dimension} ${known.value}`, expected, known.version, {
    current: keptSubject.render(renderSubject(known)),
  });
}

function auditedLimit({ policy, limit, windows, untilMs, reason }: SubjectLimitRecord): unknown {
  return { policy, limit: limit === "" ? undefined : limit, windows: JSON.parse(windows), until_ms: untilMs, reason };
}
