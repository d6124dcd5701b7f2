import { SluiceError } from "../errors.ts";
import { maxDimensionLength } from "../policy/bounds.ts";
import { canonicalValue } from "../subject/canonical-value.ts";
import { defaultIpv6PrefixBits, ipSubject } from "../subject/ip-address.ts";
import { joinSubject } from "../subject/join-subject.ts";
import type { CheckRequest } from "./check-request.ts";

type Dimensions = NonNullable<CheckRequest["dimensions"]>;

/** A dimension as received. An absent one is "", and "" is absent: an empty header says no more than none. */
export function rawDimension(dimensions: Dimensions, name: string): string {
  return checkedText(dimensions, name, readField(dimensions, name));
}

/**
 * Reading a property by a literal name is several times as fast as by a variable: these are the names that most limits
 * count by.
 */
function readField(dimensions: Dimensions, name: string): unknown {
  switch (name) {
    case "user":
      return dimensions.user;
    case "tenant":
      return dimensions.tenant;
    case "ip":
      return dimensions.ip;
    case "api_key":
      return dimensions.api_key;
    case "resource":
      return dimensions.resource;
    case "prefix":
      return dimensions.prefix;
    case "api":
      return dimensions.api;
    case "scope":
      return dimensions.scope;
    default:
      return dimensions[name];
  }
}

/** Every check reads these two. */
export function rawEndpoint(dimensions: Dimensions): string {
  return checkedText(dimensions, "endpoint", dimensions.endpoint);
}

export function rawMethod(dimensions: Dimensions): string {
  return checkedText(dimensions, "method", dimensions.method);
}

function checkedText(dimensions: Dimensions, name: string, value: unknown): string {
  if (value === undefined) return "";
  if (typeof value !== "string") {
    // An inherited property (`toString`, …) was not sent.
    if (!Object.hasOwn(dimensions, name)) return "";
    throw badDimension(name, `must be a string, not ${value === null ? "null" : typeof value}`);
  }
  if (value.length > maxDimensionLength) {
    throw badDimension(name, `is ${value.length} characters long; at most ${maxDimensionLength} are allowed`);
  }
  return value;
}

/** A dimension as it is counted: addresses and endpoints in the one form that all their spellings share. */
export function readDimension(
  dimensions: Dimensions,
  name: string,
  ipv6PrefixBits: number = defaultIpv6PrefixBits,
): string {
  if (name === "subject") return readSubject(dimensions, ipv6PrefixBits);
  const value = rawDimension(dimensions, name);
  if (value === "") return value;
  if (name !== "ip") return canonicalValue(name, value);
  const subject = ipSubject(value, ipv6PrefixBits);
  if (subject === undefined) throw badDimension("ip", `is not an IP address: ${JSON.stringify(value.slice(0, 64))}`);
  return subject;
}

/** The dimensions that identify whom a request is about if neither a policy nor its `scope` says so, best first. */
export const identifyingDimensions: readonly string[] = [
  "user",
  "api_key",
  "limit_key",
  "identifier",
  "tenant",
  "org",
  "ip",
];
const describing: ReadonlySet<string> = new Set([
  "endpoint",
  "method",
  "region",
  "tier",
  "scope",
  "resource",
  "prefix",
  "api",
]);

/** Dimensions that Sluice, its transports and its middleware know by name. */
export const wellKnownDimensions: readonly string[] = ["subject", ...identifyingDimensions, ...describing];

function readSubject(dimensions: Dimensions, ipv6PrefixBits: number): string {
  const scope = rawDimension(dimensions, "scope");
  if (scope !== "" && scope !== "subject" && !describing.has(scope)) {
    const value = readDimension(dimensions, scope, ipv6PrefixBits);
    if (value !== "") return `${scope}:${value}`;
  }
  for (const name of identifyingDimensions) {
    const value = readDimension(dimensions, name, ipv6PrefixBits);
    if (value !== "") return `${name}:${value}`;
  }
  const own = Object.keys(dimensions).filter((name) => !describing.has(name));
  return joinSubject(own.sort().flatMap((name) => [name, rawDimension(dimensions, name)]));
}

function badDimension(name: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `dimensions.${name} ${message}`, [{ path: ["dimensions", name], message }]);
}
