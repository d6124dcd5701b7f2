import type { RolloutBody } from "@sluice/protocol/admin";
import type { ReactNode } from "react";
import { formatCount } from "../../format/numbers.ts";
import { formatMoment } from "../../format/times.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";

const states: Readonly<Record<RolloutBody["state"], readonly [text: string, tone: Tone]>> = {
  waiting: ["waiting", "plain"],
  observing: ["observing", "accent"],
  running: ["running", "accent"],
  paused: ["paused", "warning"],
  done: ["done", "good"],
  rolled_back: ["rolled back", "denied"],
  cancelled: ["cancelled", "plain"],
};

export function isUnderway({ state }: Pick<RolloutBody, "state">): boolean {
  return state === "waiting" || state === "observing" || state === "running" || state === "paused";
}

export function RolloutState({ rollout }: { readonly rollout: RolloutBody }): ReactNode {
  const [text, tone] = states[rollout.state];
  return (
    <span className="flex gap-1.5">
      <Badge tone={tone}>{text}</Badge>
      {rollout.shadow && <Badge>shadow</Badge>}
    </span>
  );
}

/** Why it does not go on now, in a sentence. */
export function waitWords({ waits_for: wait }: RolloutBody): string {
  if (wait === undefined) return "";
  const until = wait.until_ms === undefined ? "" : ` until ${formatMoment(wait.until_ms)}`;
  const of = (have = 0, needed = 0, what: string): string => `${formatCount(have)} of ${formatCount(needed)} ${what}`;
  switch (wait.code) {
    case "start":
      return `It starts later: it waits${until}.`;
    case "observation":
      return `It observes the old version: ${of(wait.decided, wait.decided_needed, "requests")} in ${of(wait.minutes, wait.minutes_needed, "minutes")}${until}.`;
    case "baseline":
      return `It needs more requests under the old version: ${of(wait.decided, wait.decided_needed, "requests")}${until}.`;
    case "hold":
      return `It holds this step${until}.`;
    case "looks":
      return `It needs minutes that can be compared: ${of(wait.looks, wait.looks_needed, "minutes")}${until}.`;
    case "fine_look":
      return `It needs a good measurement, after ${of(wait.strikes, wait.strikes_to_roll_back, "strikes")} to roll back.`;
    case "traffic":
      return `It needs traffic under the new version: ${of(wait.decided, wait.decided_needed, "requests")} since the latest measurement.`;
    case "operator":
      return "It waits for an operator.";
    case "kill_switch":
      return `The kill switch is on${until}.`;
    case "due":
      return "It takes its next step within seconds.";
  }
}
