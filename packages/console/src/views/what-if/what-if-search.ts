import { type Search, textParam } from "../../url/search-params.ts";

export interface WhatIfSearch {
  /** The policy whose new version is tried. */
  readonly policy?: string | undefined;
  /** The recording to replay. */
  readonly recording?: string | undefined;
  /** The simulation that is shown. */
  readonly simulation?: string | undefined;
}

export function parseWhatIfSearch({ policy, recording, simulation }: Search): WhatIfSearch {
  return { policy: textParam(policy, 256), recording: textParam(recording, 64), simulation: textParam(simulation, 64) };
}
