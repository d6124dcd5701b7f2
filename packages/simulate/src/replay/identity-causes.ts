import type { IdentityCause, IdentityReport } from "./identity-report.ts";
import type { RecordingCount, RecordingFacts } from "./recording-lines.ts";

export interface IdentityCounts {
  readonly recordings: readonly RecordingFacts[];
  readonly sampledBy: string | undefined;
  readonly compared: number;
  readonly agreed: number;
  readonly skipped: number;
  readonly forced: number;
  readonly degraded: number;
  readonly causes: ReadonlyMap<IdentityCause["cause"], number>;
  readonly examples: IdentityReport["examples"];
  /** Live counters that were dropped because memory was full. */
  readonly lost: number;
}

/** The report of an identity run, with everything that may have kept it from reproducing each decision. */
export function explainIdentity(counts: IdentityCounts): IdentityReport {
  const { compared, agreed, skipped, forced, degraded, causes, examples } = counts;
  const known = listKnown(counts);
  const messages = new Map(known.map(({ cause, message }) => [cause, message]));
  for (const cause of causes.keys())
    if (!messages.has(cause)) messages.set(cause, "nothing that the recording says explains these");
  return {
    requests: compared,
    agreed,
    share: compared === 0 ? 0 : agreed / compared,
    exact: compared > 0 && agreed === compared,
    expected_exact: known.length === 0,
    causes: [...messages].map(([cause, message]) => ({ cause, requests: causes.get(cause) ?? 0, message })),
    not_compared: { degraded, forced, sampled: skipped },
    examples,
  };
}

function listKnown(counts: IdentityCounts): readonly Pick<IdentityCause, "cause" | "message">[] {
  const { recordings, sampledBy, degraded, forced, lost } = counts;
  const heads = recordings.map(({ head }) => head);
  const sum = (name: RecordingCount): number => recordings.reduce((all, one) => all + one.counts[name], 0);
  const found: Pick<IdentityCause, "cause" | "message">[] = [];
  const add = (cause: IdentityCause["cause"], isSo: boolean, message: string): void => {
    if (isSo) found.push({ cause, message });
  };
  const [empty, unknown] = [
    heads.filter(({ fresh }) => fresh === false),
    heads.filter((one) => one.fresh === undefined),
  ];
  add("counters_not_empty", empty.length > 0, "counters were not empty when the recording began");
  // A server's counters may have been empty; if all decisions agree, they were.
  const isUnsure = empty.length === 0 && unknown.length > 0 && counts.agreed < counts.compared;
  add("counters_not_empty", isUnsure, "counters on a server may not have been empty when the recording began");
  add("leases", heads.some(({ leases }) => leases) || sum("lease") > 0, "nodes or clients decided by leases");
  const isSample = sampledBy !== undefined;
  add(
    "sampling",
    isSample,
    `only a part of the subjects was recorded, by ${sampledBy}; limits that others share were left out`,
  );
  const nodes = new Set(heads.map(({ node }) => node)).size;
  const missing = heads.reduce((most, { workers = 1 }) => Math.max(most, workers), 1) - recordings.length;
  add("several_nodes", nodes > 1, `${nodes} nodes recorded, and their clocks and counters differ`);
  add(
    "several_nodes",
    nodes === 1 && missing > 0,
    `${missing} processes of the node recorded to files that were not given`,
  );
  const changes = (["charge", "give_back", "block", "reset", "hold"] as const).filter((name) => sum(name) > 0);
  const listed = changes.map((name) => `${sum(name)} × ${name.replace("_", "-")}`).join(", ");
  add("changed_counters", changes.length > 0, `counters were changed by something else than checks: ${listed}`);
  add("degraded", degraded > 0, `${degraded} requests were decided while counters were unavailable`);
  add("degraded", forced > 0, `${forced} requests were decided by the kill switch`);
  add("dropped", sum("dropped") > 0, `${sum("dropped")} requests were not recorded, because writing did not keep up`);
  const hashed = [...new Set(heads.flatMap((head) => head.hashed))];
  add("hashed", hashed.length > 0, `values of ${hashed.join(", ")} are hashed, so no range of addresses contains them`);
  add(
    "own_limits",
    sum("own_limits") > 0,
    `${sum("own_limits")} requests brought their own limits, and were not recorded`,
  );
  add("exceptions", sum("exceptions") > 0, "policies were disabled or subjects blocked, which a replay does not know");
  const cut = recordings.some(({ end }) => end === undefined);
  add("cut_off", cut, "the recording has no end: it was cut off, or is still being written");
  add("memory", lost > 0, `memory was full: ${lost} live counters were dropped`);
  return found;
}
