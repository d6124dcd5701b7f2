import type { NodeBody, NodesBody } from "@sluice/protocol/admin";
import type { ReactNode } from "react";
import { Badge } from "./badge.tsx";
import { DataTable, type TableColumn } from "./data-table.tsx";
import { RelativeTime } from "./relative-time.tsx";

const columns: readonly TableColumn<NodeBody>[] = [
  {
    id: "name",
    title: "Node",
    cell: ({ name }) => <span className="font-medium">{name}</span>,
    sortBy: ({ name }) => name,
  },
  {
    id: "state",
    title: "State",
    cell: ({ alive, current }) =>
      !alive ? (
        <Badge tone="denied">silent</Badge>
      ) : current ? (
        <Badge tone="good">current</Badge>
      ) : (
        <Badge tone="warning">behind</Badge>
      ),
    sortBy: ({ alive, current }) => Number(alive) + Number(current),
  },
  {
    id: "generation",
    title: "Generation",
    right: true,
    cell: ({ generation }) => generation,
    sortBy: ({ generation }) => generation,
  },
  {
    id: "applied",
    title: "Applied",
    right: true,
    cell: ({ applied_ms }) => <RelativeTime ms={applied_ms} />,
    sortBy: ({ applied_ms }) => applied_ms,
  },
  { id: "policies", title: "Policies", right: true, cell: ({ details }) => detail(details.policies) },
  {
    id: "push",
    title: "Changes by",
    cell: ({ details }) => `${detail(details.push)}${details.push_connected === false ? ", not connected: polls" : ""}`,
  },
  { id: "version", title: "Version", cell: ({ version }) => <span className="font-mono text-xs">{version}</span> },
  {
    id: "started",
    title: "Started",
    right: true,
    cell: ({ started_ms }) => <RelativeTime ms={started_ms} />,
    sortBy: ({ started_ms }) => started_ms,
  },
];

/** Every server on the policy store, and the generation that each decides by. */
export function NodeTable({ nodes }: { readonly nodes: NodesBody }): ReactNode {
  return (
    <DataTable
      columns={columns}
      label={`Nodes, newest generation ${nodes.generation}`}
      rowKey={({ id }) => id}
      rows={nodes.nodes}
    />
  );
}

function detail(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "–";
}
