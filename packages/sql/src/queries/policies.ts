import { RuleTaken, VersionTaken } from "../errors.ts";
import type { StoreChange, StoreView } from "../policy-store.ts";
import { policies, type Tables, versions } from "../tables.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { parseLimit } from "./parse-limit.ts";
import { putRows, rowsInParts } from "./write-records.ts";

type PolicyView = Pick<
  StoreView,
  "policies" | "policy" | "findPolicyByRule" | "versions" | "version" | "newestVersions"
>;

export function createPolicyView({ tables, all }: Session): PolicyView {
  const selectPolicies = tables.selectFrom("sluice_policies").select(policies.columns);
  const selectVersions = tables.selectFrom("sluice_versions").select(versions.columns);

  return {
    async policies({ after, limit, owner } = {}) {
      let query = selectPolicies.where("deleted", "=", 0).orderBy("id");
      if (after !== undefined) query = query.where("id", ">", after);
      if (owner !== undefined) query = query.where("owner", "=", owner);
      if (limit !== undefined) query = query.limit(parseLimit(limit));
      return (await all(query)).map(policies.recordFromRow);
    },

    async policy(id) {
      return (await all(selectPolicies.where("id", "=", id))).map(policies.recordFromRow)[0];
    },

    async findPolicyByRule(ruleKey) {
      const query = selectPolicies.where("rule_key", "=", textKey(ruleKey)).where("deleted", "=", 0);
      return (await all(query)).map(policies.recordFromRow)[0];
    },

    async versions(policy, { after, limit } = {}) {
      let query = selectVersions.where("policy", "=", policy).orderBy("version", "desc");
      if (after !== undefined) query = query.where("version", "<", versionFromDigits(after));
      if (limit !== undefined) query = query.limit(parseLimit(limit));
      return (await all(query)).map(versions.recordFromRow);
    },

    async version(policy, version) {
      if (!Number.isSafeInteger(version)) return undefined;
      const query = selectVersions.where("policy", "=", policy).where("version", "=", version);
      return (await all(query)).map(versions.recordFromRow)[0];
    },

    async newestVersions() {
      const query = tables.selectFrom("sluice_versions").select(["policy", (of) => of.fn.max("version").as("version")]);
      return new Map((await all(query.groupBy("policy"))).map(({ policy, version }) => [policy, Number(version)]));
    },
  };
}

export function createPolicyChange(session: Session): Pick<StoreChange, "putPolicy" | "addVersion"> {
  const { tables, all } = session;
  return {
    async putPolicy(records) {
      for (const rows of rowsInParts(policies, records)) {
        await refuseTakenRules(session, rows);
        await putRows(session, policies, rows);
      }
    },

    async addVersion(records) {
      for (const rows of rowsInParts(versions, records)) {
        const added = await all(
          tables
            .insertInto("sluice_versions")
            .values(rows)
            .onConflict((conflict) => conflict.columns(versions.key).doNothing())
            .returning(versions.key),
        );
        const keys = new Set(added.map(({ policy, version }) => `${version} ${policy}`));
        const taken = rows.find(({ policy, version }) => !keys.has(`${version} ${policy}`));
        if (taken !== undefined)
          throw new VersionTaken(`policy ${taken.policy} has a version ${taken.version} already`);
      }
    },
  };
}

async function refuseTakenRules({ tables, all }: Session, rows: readonly Tables["sluice_policies"][]): Promise<void> {
  const wanted = new Map<string, string>();
  for (const { id, rule_key, deleted } of rows) {
    if (rule_key === null || deleted === 1) continue;
    const other = wanted.get(rule_key);
    if (other !== undefined) throw new RuleTaken(other);
    wanted.set(rule_key, id);
  }
  if (wanted.size === 0) return;
  const holders = await all(
    tables
      .selectFrom("sluice_policies")
      .select(["id", "rule_key"])
      .where("rule_key", "in", [...wanted.keys()])
      .where("deleted", "=", 0),
  );
  for (const { id, rule_key } of holders) if (wanted.get(rule_key ?? "") !== id) throw new RuleTaken(id);
}

/** Anything that is not a version sorts before every version. */
function versionFromDigits(digits: string): number {
  const version = Number(digits);
  return Number.isSafeInteger(version) ? version : 0;
}
