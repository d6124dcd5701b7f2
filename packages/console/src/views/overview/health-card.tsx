import type { LiveOverviewBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { nodesQuery } from "../../api/queries.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";

const storeStates = {
  current: ["good", "Policy store is current"],
  stale: ["warning", "Newest policies cannot be applied"],
  away: ["warning", "Policy store is unavailable"],
  expired: ["denied", "Policy store is unavailable for too long"],
} as const;

/** Servers and what they depend on. */
export function HealthCard({ sample }: { readonly sample: LiveOverviewBody | undefined }): ReactNode {
  const { data, error } = useQuery(nodesQuery);
  return (
    <Card aside={sample !== undefined && <State sample={sample} />} title="Servers">
      {sample?.store?.reason !== undefined && <p className="pb-2 text-sm text-warning">{sample.store.reason}</p>}
      {error !== null && data === undefined && <ErrorNotice error={error} what="The servers cannot be listed" />}
      {data !== undefined && (
        <ul className="flex flex-col divide-y divide-line">
          {data.nodes.map((node) => (
            <li className="flex flex-wrap items-center justify-between gap-2 py-2 text-sm" key={node.id}>
              <span className="min-w-0 truncate font-medium">{node.name}</span>
              <span className="flex items-center gap-2 text-xs text-ink-faint">
                {node.version}, generation {node.generation}
                {node.alive ? (
                  <Badge tone={node.current ? "good" : "warning"}>{node.current ? "Current" : "Behind"}</Badge>
                ) : (
                  <Badge tone="denied">
                    Silent since <RelativeTime ms={node.seen_ms} />
                  </Badge>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function State({ sample }: { readonly sample: LiveOverviewBody }): ReactNode {
  const [tone, text] = storeStates[sample.store?.state ?? "current"];
  return (
    <>
      {sample.degraded.map((why) => (
        <Badge key={why} tone="degraded">
          {why.replaceAll("_", " ")}
        </Badge>
      ))}
      {sample.store !== undefined && <Badge tone={tone}>{text}</Badge>}
    </>
  );
}
