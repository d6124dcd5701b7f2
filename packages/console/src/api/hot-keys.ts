import type { HotKeysBody } from "@sluice/protocol/admin";
import { ask } from "./ask.ts";

/** The hottest counters of all nodes, or of one. */
export function hotKeys(
  query: { readonly by: "rate" | "denials"; readonly count: number; readonly node?: string | undefined },
  signal?: AbortSignal,
): Promise<HotKeysBody> {
  return ask("GET", "hot-keys", { query, signal });
}
