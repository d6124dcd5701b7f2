import { type StatusBody, status as statusShape, type ViewOf } from "@sluice/protocol/http";
import { redactText, renderPolicyProblem } from "sluice/internal";
import type { CountersReport, ServerStatus } from "../../status/server-status.ts";
import type { StoreReport } from "../../status/store-report.ts";

/** The most characters of a policy store's error, which every viewer can read. */
const maxReasonLength = 1_000;

const maxProblems = 20;
const maxOverridden = 100;

type StatusView = ViewOf<typeof statusShape>;

/** A server's status as a body of the HTTP API. What is not known is left out. */
export function statusBody(status: ServerStatus): StatusBody {
  const { policies, store } = status;
  return statusShape.render({
    ...status,
    status: status.state,
    degraded: status.degraded.length === 0 ? undefined : status.degraded,
    policies: {
      ...policies,
      problemCount: policies.problems.length,
      problems: policies.problems.slice(0, maxProblems).map(renderPolicyProblem),
    },
    store: store && storeView(store),
    counters: countersView(status.counters),
  });
}

function storeView(store: StoreReport): StatusView["store"] {
  const { problems, overridden } = store;
  return {
    ...store,
    reason: store.reason === undefined ? undefined : redactText(store.reason, maxReasonLength),
    newestGeneration: store.newest,
    problemCount: problems.length,
    problems: problems.slice(0, maxProblems).map(renderPolicyProblem),
    overriddenCount: overridden.length,
    overridden: overridden.slice(0, maxOverridden),
    disabled: store.disabled.slice(0, maxOverridden),
    nodeId: store.node.id,
    nodeName: store.node.name,
  };
}

function countersView(counters: CountersReport): StatusView["counters"] {
  if (counters.kind === "memory") return counters;
  return { ...counters, shards: counters.shards.map(({ name, ...shard }) => ({ ...shard, shard: name })) };
}
