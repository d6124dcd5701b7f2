import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { statusQuery } from "../../api/status.ts";
import { formatCount } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { Card } from "../../ui/card.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Stat, StatRow } from "../../ui/stat.tsx";

/** What the node that answers decides by tokens that it took in advance. */
export function LeasesCard(): ReactNode {
  const { data, error } = useQuery(statusQuery);
  if (error !== null) return <ErrorNotice error={error} what="Leases cannot be shown" />;
  if (data === undefined) return null;
  const leases = data.counters.kind === "redis" ? data.counters.leases : undefined;
  return (
    <Card aside="of the node that answers" title="Leases">
      {leases === undefined ? (
        <EmptyState icon="node" title="This node takes no leases">
          Its counters are{" "}
          {data.counters.kind === "memory"
            ? "in its own memory, so there is nothing to lease"
            : "asked for every check: --leases is off"}
          .
        </EmptyState>
      ) : (
        <StatRow label="Leases">
          <Stat label="Held" value={formatCount(leases.held)} />
          <Stat label="Units left to spend" value={formatCount(leases.tokens)} />
          <Stat
            label="Beyond their time"
            value={formatCount(leases.stale)}
            {...(leases.stale_for_ms !== undefined && { about: `for ${formatDuration(leases.stale_for_ms)}` })}
          />
        </StatRow>
      )}
    </Card>
  );
}
