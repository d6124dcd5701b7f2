import type { Limiter } from "sluice";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { LiveChanges } from "../control-plane/live/live-changes.ts";
import { LiveDecisions } from "../control-plane/live/live-decisions.ts";
import { LiveOverview } from "../control-plane/live/live-overview.ts";
import { LiveStreams } from "../control-plane/live/live-streams.ts";
import type { Service } from "../data-plane/service/service.ts";
import type { DecisionTail } from "../observe/live/decision-tail.ts";
import type { WorkerLink } from "../observe/worker-link.ts";
import type { Settings } from "../settings/settings.ts";
import { countWorkers } from "./workers/check-workers.ts";

export interface OpenLiveOptions {
  readonly settings: Settings;
  readonly service: Pick<Service, "metrics" | "status" | "storeStatus" | "log">;
  readonly control: ControlPlane;
  readonly limiter: Pick<Limiter, "snapshot">;
  readonly tail: DecisionTail;
  readonly node: { readonly id: string; readonly name: string };
  readonly worker: WorkerLink | undefined;
}

/** Live data of this node, for those who watch it. */
export function openLive({ settings, service, control, limiter, tail, node, worker }: OpenLiveOptions): LiveStreams {
  const { metrics, status, storeStatus, log } = service;
  const shared = { node, worker, processes: worker === undefined ? 1 : countWorkers(settings) };
  return new LiveStreams({
    overview: new LiveOverview({ ...shared, totals: metrics.decided, status }),
    decisions: new LiveDecisions({ ...shared, tail, limiter, ipv6PrefixBits: settings.ipv6PrefixBits }),
    changes: new LiveChanges({ control, storeStatus: () => storeStatus?.() }),
    log,
    worker,
  });
}
