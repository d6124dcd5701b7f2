import { queryOptions } from "@tanstack/react-query";
import { admin } from "./admin.ts";

/** What several views read. Keys begin with the noun, by which the live stream refreshes them. */
export const killSwitchQuery = queryOptions({
  queryKey: ["kill-switch"],
  queryFn: ({ signal }) => admin.killSwitch(signal),
  refetchInterval: 30_000,
});

export const nodesQuery = queryOptions({
  queryKey: ["nodes"],
  queryFn: ({ signal }) => admin.nodes(signal),
  refetchInterval: 15_000,
});

export const policyQuery = (id: string) =>
  queryOptions({ queryKey: ["policy", id, "current"], queryFn: ({ signal }) => admin.policy(id, signal) });

export const versionsQuery = (id: string) =>
  queryOptions({ queryKey: ["policy", id, "versions"], queryFn: ({ signal }) => admin.versions(id, signal) });

/** All policies, without pages: a thousand come in one answer. */
export const policiesQuery = queryOptions({
  queryKey: ["policies", "list"],
  queryFn: ({ signal }) => admin.policies(signal),
  staleTime: 30_000,
});
