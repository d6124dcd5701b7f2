import { sql } from "kysely";
import {
  auditColumns,
  nodeColumns,
  policyColumns,
  pulseColumns,
  rolloutColumns,
  subjectColumns,
  subjectLimitColumns,
  tallyColumns,
  tokenColumns,
  versionColumns,
} from "./columns.ts";
import type { AuditQuery, Page, StoreView } from "./policy-store.ts";
import {
  auditFromRow,
  killSwitchFromRow,
  nodeFromRow,
  policyFromRow,
  rolloutFromRow,
  subjectFromRow,
  subjectLimitFromRow,
  tallyFromRow,
  tokenFromRow,
  versionFromRow,
} from "./rows.ts";
import { textKey } from "./text-key.ts";
import type { Session } from "./transact.ts";

/** What can be read in one transaction. */
export function createStoreView({ database, tables, all }: Session): StoreView {
  const policies = tables.selectFrom("sluice_policies").select(policyColumns);
  const versions = tables.selectFrom("sluice_versions").select(versionColumns);
  const rollouts = tables.selectFrom("sluice_rollouts").select(rolloutColumns);
  const subjects = tables.selectFrom("sluice_subjects").select(subjectColumns);
  const tokens = tables.selectFrom("sluice_tokens").select(tokenColumns);

  return {
    async pulse() {
      const [row] = await all(tables.selectFrom("sluice_pulse").select(pulseColumns).where("id", "=", 1));
      if (row === undefined) return { generation: 0, killSwitch: undefined };
      return { generation: row.generation, killSwitch: killSwitchFromRow(row) };
    },

    async nowMs() {
      const [row] = await all(tables.selectNoFrom(sql<number>`${database.nowMs()}`.as("now_ms")));
      return Number(row?.now_ms);
    },

    async policies({ after, limit, owner } = {}) {
      let query = policies.where("deleted", "=", 0).orderBy("id");
      if (after !== undefined) query = query.where("id", ">", after);
      if (owner !== undefined) query = query.where("owner", "=", owner);
      if (limit !== undefined) query = query.limit(countOf(limit));
      return (await all(query)).map(policyFromRow);
    },

    async policy(id) {
      return (await all(policies.where("id", "=", id))).map(policyFromRow)[0];
    },

    async findPolicyByRule(ruleKey) {
      const query = policies.where("rule_key", "=", textKey(ruleKey)).where("deleted", "=", 0);
      return (await all(query)).map(policyFromRow)[0];
    },

    async versions(policy, { after, limit } = {}) {
      let query = versions.where("policy", "=", policy).orderBy("version", "desc");
      if (after !== undefined) query = query.where("version", "<", wholeNumber(after));
      if (limit !== undefined) query = query.limit(countOf(limit));
      return (await all(query)).map(versionFromRow);
    },

    async version(policy, version) {
      if (!Number.isSafeInteger(version)) return undefined;
      return (await all(versions.where("policy", "=", policy).where("version", "=", version))).map(versionFromRow)[0];
    },

    async newestVersions() {
      const query = tables.selectFrom("sluice_versions").select(["policy", (of) => of.fn.max("version").as("version")]);
      return new Map((await all(query.groupBy("policy"))).map(({ policy, version }) => [policy, Number(version)]));
    },

    async rollouts({ after, limit, policy, states, toVersions } = {}) {
      if (states?.length === 0) return [];
      let query = rollouts.orderBy("created_ms", "desc").orderBy("id", "desc");
      if (after !== undefined) {
        const [last] = await all(rollouts.where("id", "=", after));
        if (last === undefined) return [];
        query = query.where((is) =>
          is.or([
            is("created_ms", "<", last.created_ms),
            is.and([is("created_ms", "=", last.created_ms), is("id", "<", last.id)]),
          ]),
        );
      }
      if (policy !== undefined) query = query.where("policy", "=", policy);
      if (states !== undefined) query = query.where("state", "in", states);
      if (toVersions !== undefined)
        query = query.where("to_version", ">=", toVersions.from).where("to_version", "<", toVersions.to + 1);
      if (limit !== undefined) query = query.limit(countOf(limit));
      return (await all(query)).map(rolloutFromRow);
    },

    async rollout(id) {
      return (await all(rollouts.where("id", "=", id))).map(rolloutFromRow)[0];
    },

    async tallies(rollout, sinceMinute) {
      let query = tables.selectFrom("sluice_tallies").select(tallyColumns).where("rollout", "=", rollout);
      if (sinceMinute !== undefined) query = query.where("minute", ">=", sinceMinute);
      query = query.orderBy("minute").orderBy("node").orderBy("step").orderBy("side");
      return (await all(query)).map(tallyFromRow);
    },

    async subjects({ after, limit, dimension } = {}) {
      let query = subjects.orderBy("dimension").orderBy("value_key");
      if (dimension !== undefined) query = query.where("dimension", "=", dimension);
      if (after !== undefined) {
        if (dimension === undefined) throw new TypeError("subjects can be had after one only within a dimension");
        query = query.where("value_key", ">", textKey(after));
      }
      if (limit !== undefined) query = query.limit(countOf(limit));
      return (await all(query)).map(subjectFromRow);
    },

    async subject(dimension, value) {
      const query = subjects.where("dimension", "=", dimension).where("value_key", "=", textKey(value));
      return (await all(query)).map(subjectFromRow)[0];
    },

    async subjectLimits(dimension, value) {
      let query = tables.selectFrom("sluice_subject_limits").select(subjectLimitColumns);
      if (dimension !== undefined) query = query.where("dimension", "=", dimension);
      if (value !== undefined) query = query.where("value_key", "=", textKey(value));
      query = query
        .orderBy("dimension")
        .orderBy("value_key")
        .orderBy("policy")
        .orderBy("limit_name")
        .orderBy("temporary");
      return (await all(query)).map(subjectLimitFromRow);
    },

    async tokens() {
      return (await all(tokens.orderBy("id"))).map(tokenFromRow);
    },

    async token(id) {
      return (await all(tokens.where("id", "=", id))).map(tokenFromRow)[0];
    },

    async audit(wanted = {}) {
      return (await all(auditQuery(tables, wanted))).map(auditFromRow);
    },

    async nodes() {
      return (await all(tables.selectFrom("sluice_nodes").select(nodeColumns).orderBy("id"))).map(nodeFromRow);
    },
  };
}

function auditQuery(tables: Session["tables"], wanted: AuditQuery & Page) {
  let query = tables.selectFrom("sluice_audit").select(auditColumns).orderBy("id", "desc");
  if (wanted.after !== undefined) query = query.where("id", "<", wanted.after);
  if (wanted.kind !== undefined) query = query.where("kind", "=", wanted.kind);
  if (wanted.target !== undefined) query = query.where("target_key", "=", textKey(wanted.target));
  if (wanted.actor !== undefined) query = query.where("actor_key", "=", textKey(wanted.actor));
  if (wanted.action !== undefined) query = query.where("action", "=", wanted.action);
  if (wanted.outcome !== undefined) query = query.where("outcome", "=", wanted.outcome);
  if (wanted.sinceMs !== undefined) query = query.where("at_ms", ">=", wanted.sinceMs);
  if (wanted.untilMs !== undefined) query = query.where("at_ms", "<", wanted.untilMs);
  if (wanted.limit !== undefined) query = query.limit(countOf(wanted.limit));
  return query;
}

/** SQLite takes a negative one for no limit, PostgreSQL refuses it. */
function countOf(limit: number): number {
  if (!Number.isSafeInteger(limit) || limit < 0)
    throw new RangeError(`limit is ${limit}, and not a whole number from 0 on`);
  return limit;
}

/** Digits of a version. What are none come before every version. */
function wholeNumber(digits: string): number {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : 0;
}
