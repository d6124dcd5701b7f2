import { type CheckRequest, findClientIp, type Problem } from "sluice";
import { maxCost, maxDimensionLength, maxNamedPolicies } from "sluice/internal";
import type { HttpRequest, RequestHeaders } from "./exchange.ts";

/** A gateway's sub-request, parsed. */
export interface AuthorizeRequest {
  readonly check: CheckRequest;
  /** Whether refusals are answered with 403, for gateways that pass nothing else on. */
  readonly denyAs403: boolean;
  /** Problems with headers, which a gateway's client may have caused. */
  readonly headerProblems: readonly Problem[];
  /** Problems with the parameters, caused by the gateway's configuration. */
  readonly queryProblems: readonly Problem[];
}

/** The parameters of a sub-request, as an operator writes them into the gateway's configuration. */
export const authorizeParameters: Readonly<Record<string, string>> = {
  policy: "Ask this policy by id, instead of all that match. May be repeated",
  cost: `The cost of the request, 1 to ${maxCost}. Absent: the policy's, else 1`,
  domain: "The family of policies to ask. Absent: default",
  deny: "403: answer refusals with 403, and the status they would have had in X-Sluice-Status, for nginx",
};

/** Reads a sub-request: the request from headers, the policies and cost from parameters. Continues after a problem. */
export function readAuthorizeRequest(
  { url, headers, rawHeaders }: Pick<HttpRequest, "url" | "headers" | "rawHeaders">,
  dimensionHeaders: Readonly<Record<string, string>> = {},
): AuthorizeRequest {
  const queryAt = url.indexOf("?");
  const query = queryAt === -1 ? "" : url.slice(queryAt + 1);
  const queryProblems: Problem[] = [];
  const headerProblems: Problem[] = [];
  const { denyAs403, ...asked } = readQuery(query, queryProblems);
  const dimensions = readDimensions(headers, rawHeaders, dimensionHeaders, headerProblems);
  refuseClientsQuery(query, headers, headerProblems);
  return { check: { ...asked, dimensions }, denyAs403, headerProblems, queryProblems };
}

interface Query extends Pick<CheckRequest, "policies" | "cost" | "domain"> {
  readonly denyAs403: boolean;
}

const maxNameLength = 256;

function readQuery(query: string, problems: Problem[]): Query {
  if (query === "") return { denyAs403: false };
  const parameters = new URLSearchParams(query);
  const wrong = (name: string, message: string): undefined => {
    problems.push({ path: [name], message });
    return undefined;
  };
  for (const name of new Set(parameters.keys())) {
    if (!Object.hasOwn(authorizeParameters, name))
      wrong(name, `is not a known parameter; there are ${Object.keys(authorizeParameters).join(", ")}`);
    else if (name !== "policy" && parameters.getAll(name).length > 1) wrong(name, "must be given once");
  }
  const policies = parameters.getAll("policy");
  if (policies.length > maxNamedPolicies) wrong("policy", `may be given ${maxNamedPolicies} times`);
  const names = [...policies.map((policy) => ["policy", policy]), ["domain", parameters.get("domain")]] as const;
  for (const [name, value] of names) {
    if (value !== null && (value === "" || value!.length > maxNameLength))
      wrong(name!, `must have 1 to ${maxNameLength} characters`);
  }
  const cost = parameters.get("cost");
  if (cost !== null && !isCost(cost)) wrong("cost", `must be a whole number from 1 to ${maxCost}`);
  const deny = parameters.get("deny");
  if (deny !== null && deny !== "403") wrong("deny", "must be 403, or be left out");
  return {
    policies: policies.length === 0 ? undefined : policies,
    domain: parameters.get("domain") ?? undefined,
    cost: cost === null ? undefined : Number(cost),
    denyAs403: deny === "403",
  };
}

function isCost(text: string): boolean {
  return /^[0-9]{1,6}$/.test(text) && Number(text) >= 1 && Number(text) <= maxCost;
}

/** Reads a dimension's header; undefined if it is absent or wrong. */
type Reader = (text: string, problem: (message: string) => void) => string | undefined;

const readers: Readonly<Record<string, Reader>> = {
  endpoint: readPath,
  method: readMethod,
  ip: readIp,
};

/** The headers of dimensions that are not configured: the one that nginx usually writes, else the common one. */
const usualHeaders = {
  endpoint: ["x-original-uri", "x-forwarded-uri"],
  method: ["x-original-method", "x-forwarded-method"],
  ip: ["x-real-ip", "x-forwarded-for"],
} as const;

function readDimensions(
  headers: RequestHeaders,
  rawHeaders: readonly string[],
  configured: Readonly<Record<string, string>>,
  problems: Problem[],
): Readonly<Record<string, string>> {
  const dimensions: Record<string, string> = {};
  const take = (dimension: string, header: string): void => {
    const text = findText(headers, header);
    if (text === undefined) return;
    const problem = (message: string): void => void problems.push({ path: [header], message });
    // Of two lines one is the client's, and joined they are neither's. A list continues in the next line.
    if (header !== "x-forwarded-for" && countLines(rawHeaders, header) > 1)
      problem("must be sent once; let the gateway replace what its client sent");
    const value = (readers[dimension] ?? readHeaderText)(text, problem);
    if (value !== undefined && value !== "") dimensions[dimension] = value;
  };
  for (const dimension of ["endpoint", "method", "ip"] as const) {
    if (configured[dimension] !== undefined) continue;
    const [first, second] = usualHeaders[dimension];
    const [one, other] = [findText(headers, first), findText(headers, second)];
    // A gateway writes one of the two, so the other is its client's. Addresses may differ: what a trusted proxy before
    // the gateway said is in one of them only.
    if (dimension !== "ip" && one !== undefined && other !== undefined && one !== other)
      problems.push({ path: [first], message: `must not differ from ${second}; let the gateway remove one of them` });
    take(dimension, one !== undefined ? first : second);
  }
  for (const [dimension, header] of Object.entries(configured)) take(dimension, header);
  return dimensions;
}

/**
 * A gateway that does not drop its client's query passes it on, alone or after the gateway's parameters, and with it
 * the choice of cost, policy and domain. So a sub-request that contains all of its client's query is refused.
 */
function refuseClientsQuery(query: string, headers: RequestHeaders, problems: Problem[]): void {
  if (query === "") return;
  const asked = listParameters(query);
  for (const header of usualHeaders.endpoint) {
    const uri = findText(headers, header);
    const at = uri?.indexOf("?") ?? -1;
    const clients = uri === undefined || at === -1 ? [] : listParameters(uri.slice(at + 1));
    if (clients.length === 0 || clients.some((one) => !asked.includes(one))) continue;
    const message =
      "has a query that the sub-request has as well; write ? after the sub-request's path in the gateway, so that it drops its client's query";
    problems.push({ path: [header], message });
  }
}

/** Names and values, however they are written. An excessively long query is not read to its end. */
function listParameters(query: string): readonly string[] {
  const pairs = [...new URLSearchParams(query.slice(0, 8_192).replace(/#.*$/s, ""))].slice(0, 100);
  return pairs.map(([name, value]) => JSON.stringify([name, value]));
}

/** An empty header says no more than none. */
function findText(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  const text = typeof value === "string" ? value : value?.join(", ");
  return text === undefined || text.trim() === "" ? undefined : text.trim();
}

function countLines(rawHeaders: readonly string[], name: string): number {
  let lines = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const written = rawHeaders[i]!;
    if (written.length === name.length && written.toLowerCase() === name) lines += 1;
  }
  return lines;
}

function readHeaderText(text: string, problem: (message: string) => void): string | undefined {
  if (text.length <= maxDimensionLength) return text;
  problem(`must have at most ${maxDimensionLength} characters, but has ${text.length}`);
  return undefined;
}

/**
 * The limiter finds the normal form; the query is no part of it, and may be long. A `#` is left to the limiter as well:
 * to some servers what follows is part of the path.
 */
function readPath(uri: string, problem: (message: string) => void): string | undefined {
  return readHeaderText(uri.replace(/\?.*$/s, ""), problem);
}

function readMethod(text: string, problem: (message: string) => void): string | undefined {
  if (/^[\w!#$%&'*+.^`|~-]{1,64}$/.test(text)) return text;
  problem("must be an HTTP method, such as GET");
  return undefined;
}

/** The right-most address, which the gateway wrote; anyone may have written the ones before it. */
function readIp(text: string, problem: (message: string) => void): string | undefined {
  const ip = findClientIp({ peer: undefined, forwardedFor: text, trustedProxies: { hops: 1 } });
  if (ip === undefined) problem("must be an IP address, or a list of them of which the last one is the client's");
  return ip;
}
