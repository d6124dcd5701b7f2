import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { nodesQuery } from "../api/queries.ts";
import { formatNoun } from "../format/numbers.ts";
import { useLiveState } from "../session/live.tsx";
import { Badge } from "../ui/badge.tsx";

/** In the top bar: whether all servers decide by the newest policies, and whether the page hears from its server. */
export function NodeState(): ReactNode {
  const { data } = useQuery(nodesQuery);
  const live = useLiveState();
  return (
    <div className="hidden items-center gap-2 text-xs text-ink-faint md:flex">
      {data !== undefined && <Nodes generation={data.generation} nodes={data.nodes} />}
      {live === "open" ? (
        <Badge title="Changes and numbers arrive as they happen" tone="good">
          Live
        </Badge>
      ) : (
        <Badge title="The page connects to the server again; numbers may be old" tone="warning">
          {live === "off" ? "Not live" : "Connecting"}
        </Badge>
      )}
    </div>
  );
}

function Nodes({
  generation,
  nodes,
}: {
  readonly generation: number;
  readonly nodes: readonly { readonly alive: boolean; readonly current: boolean }[];
}): ReactNode {
  const alive = nodes.filter((node) => node.alive);
  const behind = alive.filter((node) => !node.current).length;
  return (
    <>
      <span title="The number of the newest policies">Generation {generation}</span>
      <Badge tone={behind > 0 ? "warning" : "plain"}>
        {behind > 0 ? `${behind} of ${formatNoun(alive.length, "node")} behind` : formatNoun(alive.length, "node")}
      </Badge>
    </>
  );
}
