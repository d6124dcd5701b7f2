import type { RolloutRecord } from "@sluice/sql";
import { baselineNeeds } from "./describe-baseline.ts";
import type { Look } from "./judge-look.ts";

/** Describes a look in one or two sentences, with the numbers behind it. */
export function describeLook(
  { verdict, because, minutes, total, minute }: Look,
  strikes: number,
  { shadow, expectMoreDenials, fromVersion }: Pick<RolloutRecord, "shadow" | "expectMoreDenials" | "fromVersion">,
): string {
  const when =
    minutes === 1 ? `In the minute of ${renderMinute(minute)}` : `In ${minutes} minutes up to ${renderMinute(minute)}`;
  const denied = shadow ? "would have denied" : "denied";
  const seen = `${when} the new version ${denied} ${percent(total.rate)} of ${total.decided} requests`;
  if (verdict === "none" && because === "old_version_unused")
    return `${seen}. No subject is left under the old version to compare with.`;
  if (verdict === "none")
    return fromVersion === 0
      ? `${seen}. The policy is new, so there is nothing to compare with.`
      : `${seen}. That cannot be compared: the old version decided ${total.baselineDecided} requests of these subjects in ${total.baselineMinutes} minutes, and a comparison needs ${baselineNeeds.decided} in ${baselineNeeds.minutes}.`;
  const usual = shadow
    ? `the old version denied ${percent(total.baseline)}`
    : `the same subjects were denied ${percent(total.baseline)} under the old version`;
  const compared = `${seen}; ${usual} (σ ${points(total.sigma)}, threshold ${percent(total.threshold)})`;
  if (verdict === "fine") return `${compared}. That is normal.`;
  if (verdict === "unclear")
    return because === "surplus"
      ? `${compared}. More requests arrived than usual, and the excess alone explains the denials.`
      : `${compared}. But other subjects are also denied ${total.others.toFixed(1)} times as often as before.`;
  return expectMoreDenials
    ? `${compared}. More denials were expected.`
    : `${compared}. That is too much, ${strikes} ${strikes === 1 ? "time" : "times"} in a row.`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

function points(share: number): string {
  return `${(share * 100).toFixed(2)} points`;
}

function renderMinute(minute: number): string {
  return `${new Date(minute * 60_000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
