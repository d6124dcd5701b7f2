import { renderDuration } from "./parse-duration.ts";
import { defaultBurst } from "./parse-window.ts";
import type { DimensionValues, Limit, Policy, Window } from "./policy.ts";
import { renderWindow } from "./render-window.ts";

/** The most values, tiers or limits that are named; more are counted. */
const maxNamed = 5;

/** What a policy does, in sentences: for people who do not write policies. */
export function describePolicy(policy: Policy): readonly string[] {
  const { limits, unlimited, mode, allow, deny, replaces, rollout } = policy;
  return [
    `Applies to ${describeMatch(policy)}.`,
    ...(unlimited ? ["Does not limit them."] : limits.slice(0, maxNamed).flatMap(describeLimit)),
    ...(limits.length > maxNamed ? [`${limits.length - maxNamed} more limits apply.`] : []),
    ...describeList("Never limits", allow),
    ...describeList("Always denies", deny),
    ...(replaces.length > 0 ? [`Replaces ${joinNames(replaces, "and")} where it applies.`] : []),
    ...(rollout === undefined ? [] : [`Applies to ${rollout.percent} % of all ${rollout.by} values.`]),
    ...(mode === "shadow" ? ["Is in shadow mode: it reports denials and denies nothing."] : []),
    ...(unlimited || limits.length === 0 ? [] : [describeFailure(policy)]),
  ];
}

function describeMatch({ match }: Policy): string {
  const { methods, endpoint, dimensions, domain, named } = match;
  if (named === true) return "requests that ask for it by its id";
  const parts = [
    ...(methods.length > 0 ? [joinNames(methods, "and")] : []),
    methods.length > 0 || endpoint !== undefined || Object.keys(dimensions).length > 0 ? "requests" : "all requests",
    ...(endpoint === undefined ? [] : [`to ${endpoint}`]),
    ...Object.entries(dimensions).map(([name, values]) =>
      values.includes("*") ? `with a ${name}` : `of ${name} ${joinNames(values, "or")}`,
    ),
    ...(domain === "default" ? [] : [`in domain ${domain}`]),
  ];
  return parts.join(" ");
}

function describeLimit({ by, distinct, windows, tiers, blockForMs }: Limit): readonly string[] {
  const who = by.length === 0 ? "for all requests together" : `for each ${joinNames(by, "and")}`;
  const whose = distinct === undefined ? who : `counted in different values of ${distinct}, ${who}`;
  const named = Object.entries(tiers);
  const sentences = windows.length === 0 ? [] : [`Allows ${windows.map(describeWindow).join(", and ")}, ${whose}.`];
  for (const [tier, { windows: own }] of named.slice(0, maxNamed))
    sentences.push(`Allows ${own.map(describeWindow).join(", and ")}, ${whose} of tier ${tier}.`);
  if (named.length > maxNamed) sentences.push(`${named.length - maxNamed} more tiers have other limits.`);
  if (blockForMs > 0) sentences.push(`After a denial it blocks for ${renderDuration(blockForMs)}.`);
  return sentences;
}

const units: Readonly<Record<string, string>> = { "1s": "second", "1m": "minute", "1h": "hour", "1d": "day" };

function describeWindow(window: Window): string {
  const { limit, per, burst } = window;
  if (per.kind === "never") return `${renderWindow(window).replace(/ once$/, "")} once and never again`;
  const [amount = ""] = renderWindow(window).split("/");
  if (per.kind === "calendar") return `${amount} per calendar ${per.unit} (${per.timeZone})`;
  const length = renderDuration(per.ms);
  const rate = `${amount} per ${units[length] ?? length}`;
  return burst === defaultBurst(limit) ? rate : `${rate}, up to ${burst} at once`;
}

function describeList(what: string, values: DimensionValues): readonly string[] {
  return Object.entries(values).map(([name, listed]) => `${what} ${name} ${joinNames(listed, "or")}.`);
}

function describeFailure({ onFailure }: Policy): string {
  switch (onFailure) {
    case "open":
      return "If the counters are unavailable, it allows requests.";
    case "closed":
      return "If the counters are unavailable, it denies requests.";
    default:
      return "If the counters are unavailable, each node counts alone.";
  }
}

function joinNames(names: readonly string[], word: "and" | "or"): string {
  const shown = names.length > maxNamed ? [...names.slice(0, maxNamed), `${names.length - maxNamed} more`] : names;
  const joining = names.length > maxNamed ? "and" : word;
  if (shown.length < 2) return shown.join("");
  return `${shown.slice(0, -1).join(", ")} ${joining} ${shown.at(-1)}`;
}
