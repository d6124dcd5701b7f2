import type { StatusBody } from "@sluice/protocol/http";
import { queryOptions } from "@tanstack/react-query";
import { ask } from "./ask.ts";

/** The state of the node that answers. */
export const statusQuery = queryOptions({
  queryKey: ["status"],
  queryFn: ({ signal }) => ask<StatusBody>("GET", "status", { signal }),
  refetchInterval: 3_000,
});
