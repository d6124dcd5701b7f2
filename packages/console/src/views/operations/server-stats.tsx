import type { LiveOverviewBody } from "@sluice/protocol/admin";
import type { StatusBody } from "@sluice/protocol/http";
import { type ReactNode, useState } from "react";
import { formatCount, formatRate, formatShare } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { useLiveTopic } from "../../session/live.tsx";
import { Stat, StatRow } from "../../ui/stat.tsx";

const storeWords: Readonly<Record<string, string>> = {
  current: "current",
  stale: "stale",
  away: "unavailable",
  expired: "unavailable for too long",
};

/** The node that answers, in a row of numbers. */
export function ServerStats({ status }: { readonly status: StatusBody }): ReactNode {
  const [sample, setSample] = useState<LiveOverviewBody>();
  useLiveTopic("overview", (data) => setSample(data as unknown as LiveOverviewBody));
  const { store, queue, shed } = status;
  const isReady = status.status === "ready";
  const perSecond = sample?.per_second;
  const open = perSecond === undefined || perSecond.decided === 0 ? 0 : perSecond.degraded / perSecond.decided;
  return (
    <StatRow label="This server">
      <Stat
        about={status.detail ?? `${status.version}, up for ${formatDuration(status.uptime_ms)}`}
        label={`Server ${store?.node_name ?? ""}`}
        tone={isReady ? "good" : "warning"}
        value={status.status}
      />
      <Stat
        about={
          store === undefined ? "policies are in files" : `generation ${store.generation} of ${store.newest_generation}`
        }
        label="Policy store"
        tone={store === undefined || store.state === "current" ? "good" : "warning"}
        value={store === undefined ? "none" : (storeWords[store.state] ?? store.state)}
      />
      <Stat
        about={store === undefined ? "" : store.push.connected ? "changes arrive at once" : "polls every second"}
        label="Changes by"
        value={store?.push.kind ?? "files"}
      />
      <Stat
        about="without the counters"
        label="Fail-open share"
        tone={open > 0 ? "degraded" : "plain"}
        value={perSecond === undefined ? "–" : formatShare(open)}
      />
      <Stat
        about={`of ${formatCount(queue.max_pending)} that may wait`}
        label="Checks waiting"
        tone={queue.pending > queue.max_pending / 2 ? "warning" : "plain"}
        value={formatCount(queue.pending)}
      />
      <Stat
        about={`${formatCount(shed.pending + shed.rate)} shed since the start`}
        label="Decisions per second"
        tone={shed.pending + shed.rate > 0 ? "warning" : "plain"}
        value={perSecond === undefined ? "–" : formatRate(perSecond.decided)}
      />
    </StatRow>
  );
}
