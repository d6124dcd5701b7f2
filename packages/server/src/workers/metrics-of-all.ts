import { joinExpositions } from "../telemetry/exposition.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { WorkerLink } from "./worker-link.ts";

/**
 * The same metrics, but rendered for all processes, whichever is asked; their series differ in the label `worker`. Questions
 * that come while the others are being asked are answered by the same page.
 */
export function metricsOfAll(own: Metrics, link: WorkerLink): Metrics {
  link.answer("metrics", () => own.render());
  let rendering: Promise<string> | undefined;

  async function render(): Promise<string> {
    const [mine, others] = await Promise.all([own.render(), link.askOthers("metrics")]);
    return joinExpositions([mine, ...others]);
  }

  return {
    ...own,
    render(): Promise<string> {
      rendering ??= render().finally(() => {
        rendering = undefined;
      });
      return rendering;
    },
  };
}
