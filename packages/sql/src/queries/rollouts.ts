import type { StoreChange, StoreNote, StoreView } from "../policy-store.ts";
import { rollouts, tallies } from "../tables.ts";
import type { Session } from "../transact.ts";
import { parseLimit } from "./parse-limit.ts";
import { putRecords } from "./write-records.ts";

export function createRolloutView({ tables, all }: Session): Pick<StoreView, "rollouts" | "rollout" | "tallies"> {
  const selectRollouts = tables.selectFrom("sluice_rollouts").select(rollouts.columns);

  return {
    async rollouts({ after, limit, policy, states, toVersions } = {}) {
      if (states?.length === 0) return [];
      let query = selectRollouts.orderBy("created_ms", "desc").orderBy("id", "desc");
      if (after !== undefined) {
        const [last] = await all(selectRollouts.where("id", "=", after));
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
      if (limit !== undefined) query = query.limit(parseLimit(limit));
      return (await all(query)).map(rollouts.recordFromRow);
    },

    async rollout(id) {
      return (await all(selectRollouts.where("id", "=", id))).map(rollouts.recordFromRow)[0];
    },

    async tallies(rollout, sinceMinute) {
      let query = tables.selectFrom("sluice_tallies").select(tallies.columns).where("rollout", "=", rollout);
      if (sinceMinute !== undefined) query = query.where("minute", ">=", sinceMinute);
      query = query.orderBy("minute").orderBy("node").orderBy("step").orderBy("side");
      return (await all(query)).map(tallies.recordFromRow);
    },
  };
}

export function createTallyNote(session: Session): Pick<StoreNote, "putTallies" | "deleteTalliesBefore"> {
  const { tables, run } = session;
  return {
    putTallies: (records) => putRecords(session, tallies, records),
    deleteTalliesBefore: (beforeMinute) => run(tables.deleteFrom("sluice_tallies").where("minute", "<", beforeMinute)),
  };
}

export function createRolloutChange(session: Session): Pick<StoreChange, "putRollout"> {
  return { putRollout: (record) => putRecords(session, rollouts, record) };
}
