import type { ExplanationBody } from "@sluice/protocol/http";
import { ask } from "./ask.ts";

/** Why the server that answers would decide this request as it would. Charges nothing. */
export function explain(
  request: {
    readonly dimensions: Readonly<Record<string, string>>;
    readonly cost?: number | undefined;
    readonly domain?: string | undefined;
  },
  signal?: AbortSignal,
): Promise<ExplanationBody> {
  return ask("POST", "explain", { body: request, signal });
}
