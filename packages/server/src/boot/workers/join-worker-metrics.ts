import { shareWork } from "../../observe/share-work.ts";
import { joinExpositions } from "../../observe/telemetry/exposition.ts";
import type { Metrics } from "../../observe/telemetry/metrics.ts";
import type { WorkerLink } from "../../observe/worker-link.ts";

/** The same metrics, rendered for all processes, whichever is asked; their series differ in the label `worker`. */
export function joinWorkerMetrics(own: Metrics, link: WorkerLink): Metrics {
  link.answer("metrics", () => own.render());
  return {
    ...own,
    render: shareWork(async () => {
      const [mine, others] = await Promise.all([own.render(), link.askOthers("metrics")]);
      return joinExpositions([mine, ...others]);
    }),
  };
}
