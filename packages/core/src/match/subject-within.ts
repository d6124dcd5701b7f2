import { rawDimension } from "../request/read-dimension.ts";

/** What the default policy counts within, besides the domain: names that callers give, never the path of a request. */
const scopes = ["resource", "prefix", "api"] as const;

/** Begins the part that `subjectWithin` adds. A subject that holds it and has no such part is escaped. */
const within = "|in";

/**
 * The subject of a limit of the default policy. That policy applies to every domain and to everything in it that
 * nothing else limits, so each domain, and each `resource`, `prefix` or `api` that a request names, has a separate
 * counter: `user:u1|in|domain:payments|resource:search`. A request in the domain `default` that names none of them has
 * the plain subject. `values` is the number of dimensions that `subject` was joined from: several are escaped already.
 */
export function subjectWithin(
  subject: string,
  values: number,
  domain: string | undefined,
  dimensions: Readonly<Record<string, string>>,
): string {
  let scope = domain === undefined || domain === "default" ? "" : `|domain:${escaped(domain)}`;
  for (const name of scopes) {
    const value = rawDimension(dimensions, name);
    if (value !== "") scope += `|${name}:${escaped(value)}`;
  }
  if (scope !== "") return `${values > 1 ? subject : escaped(subject)}${within}${scope}`;
  return values <= 1 && subject.includes(within) ? escaped(subject) : subject;
}

function escaped(text: string): string {
  return text.includes("|") || text.includes("\\") ? text.replace(/[|\\]/g, "\\$&") : text;
}
