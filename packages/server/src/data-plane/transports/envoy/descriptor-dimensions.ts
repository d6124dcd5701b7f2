import { createHash } from "node:crypto";
import { type DescriptorEntry, maxDimensionLength } from "sluice";
import { findIpProblem } from "../../service/find-ip-problem.ts";

/** Longer subjects are counted by their digest: what a client can make long takes no more room than that. */
const maxSubjectLength = 1_024;

/** The subject of a descriptor, as a dimension of bounded length. */
export function boundedSubject(subject: string): string {
  return subject.length <= maxSubjectLength ? subject : digestOf(subject);
}

/** A list of entries as one text, without ambiguity. */
export function joinEntries(domain: string, entries: readonly DescriptorEntry[]): string {
  return JSON.stringify([domain, ...entries.flatMap(({ key, value }) => [key, value])]);
}

/**
 * A descriptor's entries as dimensions, for policies that are not written as descriptors. A key that is there again is
 * `key.2`, `key.3`, … Envoy lets pass what is refused, so that no value is: one that is too long for a dimension is counted by
 * its digest, and an `ip` that is none is missing. Only a path cannot be cut, because what is behind the cut may lead to
 * another route: the answer to one that is too long to be looked at is a denial.
 */
export function dimensionsOf(entries: readonly DescriptorEntry[]): Readonly<Record<string, string>> {
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
  return key === "endpoint" ? value.replace(/\?.*$/s, "") : digestOf(value);
}

function digestOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("base64url")}`;
}
