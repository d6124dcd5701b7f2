import type { RolloutBody, RolloutWaitBody } from "@sluice/protocol/admin";
import { renderMoment } from "../terminal/render-time.ts";

/** When a rollout goes on, or what it waits for and how much of that is missing; `-` where it has ended. */
export function renderWait({ waits_for: wait, policy, state }: RolloutBody, nowMs: number): string {
  if (wait === undefined) return "-";
  const at = renderMoment(wait.until_ms, nowMs);
  switch (wait.code) {
    case "start":
    case "hold":
      return at;
    case "observation":
      return `${at}; so far ${renderSeen(wait)}`;
    case "baseline":
      return `waits for traffic under the old version: ${renderSeen(wait)}; goes on without a comparison ${at}`;
    case "looks":
      return `waits for minutes to compare: ${wait.looks} of ${wait.looks_needed} on this step; goes on without them ${at}`;
    case "fine_look":
      return `waits for a minute with no more denials than usual: ${wait.strikes} in a row had more, ${wait.strikes_to_roll_back} roll it back`;
    case "traffic":
      return `waits for traffic under the new version: ${wait.decided} of ${wait.decided_needed} requests since the latest look`;
    case "kill_switch":
      return `waits for the end of the kill switch, ${at}`;
    case "operator": {
      const flag = state === "paused" ? "--resume" : "--advance";
      return `by hand: sluice policy rollout ${policy} ${flag}`;
    }
    case "due":
      return "now";
    default:
      return `waits for ${wait.code}`;
  }
}

/** The same in a word or two, for a table. */
export function renderWaitBriefly(rollout: RolloutBody, nowMs: number): string {
  const { waits_for: wait } = rollout;
  switch (wait?.code) {
    case "observation":
      return renderMoment(wait.until_ms, nowMs);
    case "baseline":
      return `at ${wait.decided} of ${wait.decided_needed} requests, ${wait.minutes} of ${wait.minutes_needed} minutes`;
    case "looks":
      return `at ${wait.looks} of ${wait.looks_needed} looks`;
    case "fine_look":
      return "after a fine look";
    case "traffic":
      return `at ${wait.decided} of ${wait.decided_needed} requests`;
    case "kill_switch":
      return "after the kill switch";
    case "operator":
      return "by hand";
    default:
      return renderWait(rollout, nowMs);
  }
}

/** Of those who join at the first step: they are the ones that are compared first. */
function renderSeen({ decided, decided_needed, minutes, minutes_needed }: RolloutWaitBody): string {
  return `${decided} of ${decided_needed} requests in ${minutes} of ${minutes_needed} minutes from those who join first`;
}
