import type { RecordingBody, RecordingChangeBody, RecordingListBody, SimulationBody } from "@sluice/protocol/admin";
import type { IdentityReport, SimulationReport } from "@sluice/simulate";
import { queryOptions } from "@tanstack/react-query";
import { ask, part } from "./ask.ts";

export interface SimulationQuestion {
  readonly source: { readonly recording?: string; readonly log_base64?: string };
  /** How dimensions are found in a log: `tenant=header:x-tenant`. */
  readonly map?: readonly string[];
  /** A whole file, or policies that each replace the one of the same id among those in force. */
  readonly candidate: { readonly file?: string; readonly policies?: readonly string[] };
  readonly now?: "policies" | "recorded";
  readonly find_limit?: string | undefined;
}

/** What a simulation found, as `sluice simulate --json` prints it. */
export interface SimulationDocument {
  readonly logs: { readonly lines: number; readonly unreadable: number; readonly late: number };
  readonly identity?: IdentityReport;
  readonly result: SimulationReport;
}

export const recordingsQuery = queryOptions({
  queryKey: ["recordings", "list"],
  queryFn: ({ signal }) => ask<RecordingListBody>("GET", "recordings", { signal }),
  // A recording grows while it is looked at.
  refetchInterval: ({ state }) => (state.data?.items.some(isRecording) === true ? 2_000 : false),
});

function isRecording({ state }: RecordingBody): boolean {
  return state === "recording";
}

/** Asked for until it has ended. */
export function simulationQuery(id: string) {
  return queryOptions({
    queryKey: ["simulations", id],
    queryFn: ({ signal }) => whatIf.find(id, signal),
    refetchInterval: ({ state }) => (state.data === undefined || isUnderway(state.data) ? 500 : false),
    staleTime: 60_000,
    retry: false,
  });
}

export function isUnderway({ state }: SimulationBody): boolean {
  return state === "waiting" || state === "running";
}

export const whatIf = {
  simulate: (body: SimulationQuestion) => ask<SimulationBody>("POST", "simulations", { body }),
  find: (id: string, signal?: AbortSignal) => ask<SimulationBody>("GET", `simulations/${part(id)}`, { signal }),
  cancel: (id: string) => ask<SimulationBody>("DELETE", `simulations/${part(id)}`),
  record: (forMs: number, why: string) =>
    ask<RecordingChangeBody>("POST", "recordings", { body: { for_ms: forMs }, why }),
  stop: (id: string) => ask<RecordingChangeBody>("POST", `recordings/${part(id)}/stop`),
};
