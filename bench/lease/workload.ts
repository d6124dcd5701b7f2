import type { CheckRequest } from "sluice";
import { createRandom, createZipf } from "../measure/draw-keys.ts";

/** Everybody's limit and the whale's, per second. */
export const limits = { subject: 60_000, whale: 1_000_000 } as const;
export const subjects = 100_000;
export const whale = "whale";

/** By how much of it each limit may be exceeded: what policies say that say nothing. */
export const maxOvershoot = 0.01;

/** Stands for the whale among numbers of subjects. */
export const whaleNumber = -1;

/**
 * Where the whale has its limit from. `subject`: an entry of its own in the policies, as a customer with a contract has. `tier`: the
 * tier that requests name. `policy`: an endpoint of its own.
 */
export const whaleWays = ["subject", "tier", "policy"] as const;
export type WhaleWay = (typeof whaleWays)[number];

/** The policies, at a share of the limits. A burst makes counters run full sooner after they ran empty. */
export function policiesFor(way: WhaleWay, share = 1, burstShare = 1): Readonly<Record<string, unknown>> {
  const windowOf = (limit: number): string => `${limit * share}/s burst ${limit * share * burstShare}`;
  const everybody = windowOf(limits.subject);
  const theWhale = windowOf(limits.whale);
  const common = { max_overshoot: maxOvershoot, on_failure: "closed" };
  const match = { endpoint: "/v1/**", method: "GET" };
  if (way === "policy") {
    return {
      policies: [
        { id: "api", match, limits: [{ by: ["tenant"], windows: [everybody] }], ...common },
        { id: "bulk", match: { endpoint: "/bulk/**" }, limits: [{ by: ["tenant"], windows: [theWhale] }], ...common },
      ],
    };
  }
  const tiers = way === "tier" ? { tiers: { whale: { windows: [theWhale] } } } : {};
  const known =
    way === "subject" ? { subjects: [{ tenant: whale, limits: [{ policy: "api", windows: [theWhale] }] }] } : {};
  return {
    policies: [{ id: "api", match, limits: [{ by: ["tenant"], windows: [everybody], ...tiers }], ...common }],
    ...known,
  };
}

/** A fresh request with a fresh subject, as a server reads one from the network. */
export function requestOf(number: number, way: WhaleWay): CheckRequest {
  const isWhale = number === whaleNumber;
  const tenant = tenantOf(number);
  if (way === "tier") return new FreshRequest(new TieredDimensions(tenant, isWhale ? "whale" : "standard"));
  return new FreshRequest(new Dimensions(tenant, isWhale && way === "policy" ? "/bulk/events" : "/v1/orders/17"));
}

/**
 * Objects like those of a decoder, and not literals: this loop does nothing else, so V8 finds that of the first of them, which wait for
 * a server that is just being asked for the first time, most survive. It would put all literals that follow among what is old, as
 * garbage of the asker's, and collecting that would be measured.
 */
class FreshRequest implements CheckRequest {
  readonly dimensions: Dimensions | TieredDimensions;
  constructor(dimensions: Dimensions | TieredDimensions) {
    this.dimensions = dimensions;
  }
}

class Dimensions {
  readonly [name: string]: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly method: string;
  constructor(tenant: string, endpoint: string) {
    this.tenant = tenant;
    this.endpoint = endpoint;
    this.method = "GET";
  }
}

class TieredDimensions {
  readonly [name: string]: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly method: string;
  readonly tier: string;
  constructor(tenant: string, tier: string) {
    this.tenant = tenant;
    this.endpoint = "/v1/orders/17";
    this.method = "GET";
    this.tier = tier;
  }
}

export function tenantOf(number: number): string {
  return number === whaleNumber ? whale : `tenant-${number}`;
}

/**
 * Who asks, request by request: every second one is the whale's, in no order; the others are of subjects 0 … 99 999, of which subject
 * k comes 1/(k+1) as often as the first (Zipf with exponent 1). The same in every process, for the same seed.
 */
export function drawSubjects(seed: number, count: number): Int32Array {
  const random = createRandom(seed);
  const drawOne = createZipf(subjects, random);
  return Int32Array.from({ length: count }, () => (random() < 0.5 ? whaleNumber : drawOne()));
}
