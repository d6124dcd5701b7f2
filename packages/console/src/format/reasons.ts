/** Why a decision is what it is, in a few words. */
const words: Readonly<Record<string, string>> = {
  within_limits: "there is room",
  over_limit: "no room left",
  never_fits: "the cost never fits",
  blocked: "the subject is blocked",
  deny_list: "named by the deny list",
  missing_dimension: "a dimension is missing",
  unlimited: "no limit applies",
  degraded: "the counters were unavailable",
};

/** `window`: the one that decided, as policies write it; empty if none did. */
export function reasonWords(reason: string, window = ""): string {
  if (window !== "" && reason === "over_limit") return `limit of ${window} reached`;
  return words[reason] ?? reason.replaceAll("_", " ");
}
