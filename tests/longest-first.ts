import path from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that take longest, longest first. They begin first, so that none of them runs alone at the end, while other cores have
 * nothing left to do. A clone that has run before knows how long files take, and needs no list.
 */
export const longestFiles: readonly string[] = [
  "tests/console/console.test.ts",
  "tests/packages/published.test.ts",
  "tests/deploy/image.test.ts",
  "packages/sql/src/plain-sql.test.ts",
  "tests/usage-events/sinks.test.ts",
  "tests/frameworks/next.test.ts",
  "packages/cli/src/main.test.ts",
  "packages/server/src/boot/workers/workers.test.ts",
  "tests/faults/faults.test.ts",
  "tests/faults/failover.test.ts",
  "tests/gameday/gameday.test.ts",
  "bench/redis.test.ts",
  "bench/service.test.ts",
  "bench/peers.test.ts",
  "bench/latency.test.ts",
  "bench/fleet.test.ts",
  "bench/lease.test.ts",
  "bench/propagation.test.ts",
  "bench/apps.test.ts",
  "bench/attacks.test.ts",
  "tests/remote/asking.test.ts",
  "tests/remote/network.test.ts",
  "tests/remote/leases.test.ts",
  "packages/redis/src/same-as-memory.test.ts",
  "packages/redis/src/redis-counters.test.ts",
  "packages/sql/src/races.test.ts",
  "packages/sql/src/policy-store.test.ts",
  "tests/control-plane/ways.test.ts",
  "tests/control-plane/outage.test.ts",
  "tests/control-plane/network.test.ts",
  "tests/remote/failing-over-http.test.ts",
  "tests/remote/failing-over-grpc.test.ts",
  "tests/packages/command-alone.test.ts",
  "packages/server/src/control-plane/rollouts/rollouts-on-simulated-traffic.test.ts",
  "tests/restart/rolling-restart.test.ts",
  "tests/control-plane/propagation.test.ts",
  "packages/cli/src/commands/control-commands.test.ts",
  "packages/server/src/control-plane/usage/usage-proof.test.ts",
  "packages/redis/src/held-takes.test.ts",
  "tests/leases/many-processes.test.ts",
  "tests/leases/game-day.test.ts",
  "tests/leases/moving-centre.test.ts",
  "packages/server/src/data-plane/transports/grpc/http2/attacks.test.ts",
  "packages/server/src/compat/grpc/policy-admin.test.ts",
  "packages/server/src/boot/daemon-leases.test.ts",
  "tests/examples/usage-consumer.test.ts",
  "tests/compatibility/compatibility.test.ts",
  // Its time runs sixty times as fast, so it begins when the heaviest files are done.
  "tests/control-plane/rollout.test.ts",
];

/** Runs the longest files first, whichever project they are in; then files by themselves, and at last those that share a worker. */
export class LongestFirst extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specifications);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

function rank({ moduleId, project }: TestSpecification): number {
  const file = path.relative(project.config.root, moduleId).split(path.sep).join("/");
  const place = longestFiles.indexOf(file);
  return place >= 0 ? place : longestFiles.length + (project.config.isolate ? 0 : 1);
}
