import { createHash } from "node:crypto";
import { type DescriptorEntry, maxDimensionLength } from "sluice/internal";
import { findIpProblem } from "../../service/find-ip-problem.ts";

/** Longer subjects are counted by their digest, so that a client cannot use more room. */
const maxSubjectLength = 1_024;

/** The subject of a descriptor, as a dimension of bounded length. */
export function boundedSubject(subject: string): string {
  return subject.length <= maxSubjectLength ? subject : digestText(subject);
}

/** A list of entries as one text, without ambiguity. */
export function joinEntries(domain: string, entries: readonly DescriptorEntry[]): string {
  return JSON.stringify([domain, ...entries.flatMap(({ key, value }) => [key, value])]);
}

/**
 * A descriptor's entries as dimensions, for policies that are not written as descriptors. A repeated key becomes
 * `key.2`, `key.3`, … Envoy lets a request pass if we refuse it, so no value is refused: one that is too long for a
 * dimension is counted by its digest, and an invalid `ip` counts as missing. Only a path cannot be cut, because the
 * rest may lead to another route: the answer to one that is too long is a denial.
 */
export function dimensionsFromEntries(entries: readonly DescriptorEntry[]): Readonly<Record<string, string>> {
  const dimensions: Record<string, string> = Object.create(null);
  for (const { key, value } of entries) {
    if (key === "" || (key === "ip" && findIpProblem(value) !== undefined)) continue;
    let name = key;
    for (let times = 2; Object.hasOwn(dimensions, name); times++) name = `${key}.${times}`;
    dimensions[name] = boundedValue(key, value);
  }
  return dimensions;
}

function boundedValue(key: string, value: string): string {
  if (value.length <= maxDimensionLength) return value;
  return key === "endpoint" ? value.replace(/\?.*$/s, "") : digestText(value);
}

function digestText(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("base64url")}`;
}
