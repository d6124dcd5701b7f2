import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { nodesQuery } from "../../api/queries.ts";
import { statusQuery } from "../../api/status.ts";
import { Card } from "../../ui/card.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { NodeTable } from "../../ui/node-table.tsx";
import { Page } from "../../ui/page.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { CountersCard } from "./counters-card.tsx";
import { DisabledCard } from "./disabled-card.tsx";
import { KillSwitchCard } from "./kill-switch-card.tsx";
import { RunbookCard } from "./runbook-card.tsx";
import { ServerStats } from "./server-stats.tsx";
import { SinksCard } from "./sinks-card.tsx";

/** What runs, what it depends on, and the switches for an emergency. */
export default function OperationsView(): ReactNode {
  const nodes = useQuery(nodesQuery);
  const status = useQuery(statusQuery);
  return (
    <Page about="Servers and what they depend on, as of now, and the switches for an emergency." title="Operations">
      {status.error !== null && (
        <ErrorNotice
          error={status.error}
          onRetry={() => void status.refetch()}
          what="The state of the server cannot be shown"
        />
      )}
      {status.data !== undefined && <ServerStats status={status.data} />}
      <Card aside={nodes.data !== undefined && `generation ${nodes.data.generation} is the newest`} flush title="Nodes">
        {nodes.data === undefined ? <SkeletonRows rows={2} /> : <NodeTable nodes={nodes.data} />}
      </Card>
      <div className="grid items-start gap-4 xl:grid-cols-2">
        <KillSwitchCard />
        <DisabledCard />
        {status.data !== undefined && <CountersCard counters={status.data.counters} />}
        {status.data !== undefined && <SinksCard sinks={status.data.sinks ?? []} />}
      </div>
      <RunbookCard />
    </Page>
  );
}
