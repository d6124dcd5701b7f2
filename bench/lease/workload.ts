import type { CheckRequest } from "sluice";
import { createRandom, createZipf } from "../measure/draw-keys.ts";

/** The limit of each subject and of the whale, per second. */
export const limits = { subject: 60_000, whale: 1_000_000 } as const;
export const subjects = 100_000;
export const whale = "whale";

/** By what share each limit may be exceeded: the default of policies. */
export const maxOvershoot = 0.01;

/** The whale's number among those of subjects. */
export const whaleNumber = -1;

/**
 * The source of the whale's limit. `subject`: a custom limit in the policies, as for a customer with a contract. `tier`: the
 * tier that requests name. `policy`: a separate endpoint.
 */
export const whaleWays = ["subject", "tier", "policy"] as const;
export type WhaleWay = (typeof whaleWays)[number];

/** The policies, at a share of the limits. A small burst makes counters refill sooner. */
export function policiesFor(way: WhaleWay, share = 1, burstShare = 1): Readonly<Record<string, unknown>> {
  const renderWindow = (limit: number): string => `${limit * share}/s burst ${limit * share * burstShare}`;
  const subjectWindow = renderWindow(limits.subject);
  const whaleWindow = renderWindow(limits.whale);
  const common = { max_overshoot: maxOvershoot, on_failure: "closed" };
  const match = { endpoint: "/v1/**", method: "GET" };
  if (way === "policy") {
    return {
      policies: [
        { id: "api", match, limits: [{ by: ["tenant"], windows: [subjectWindow] }], ...common },
        {
          id: "bulk",
          match: { endpoint: "/bulk/**" },
          limits: [{ by: ["tenant"], windows: [whaleWindow] }],
          ...common,
        },
      ],
    };
  }
  const tiers = way === "tier" ? { tiers: { whale: { windows: [whaleWindow] } } } : {};
  const known =
    way === "subject" ? { subjects: [{ tenant: whale, limits: [{ policy: "api", windows: [whaleWindow] }] }] } : {};
  return {
    policies: [{ id: "api", match, limits: [{ by: ["tenant"], windows: [subjectWindow], ...tiers }], ...common }],
    ...known,
  };
}

/** A fresh request with a fresh subject, as a server reads one from the network. */
export function createRequest(number: number, way: WhaleWay): CheckRequest {
  const isWhale = number === whaleNumber;
  const tenant = renderTenant(number);
  if (way === "tier") return new FreshRequest(new TieredDimensions(tenant, isWhale ? "whale" : "standard"));
  return new FreshRequest(new Dimensions(tenant, isWhale && way === "policy" ? "/bulk/events" : "/v1/orders/17"));
}

/**
 * Objects like those of a decoder, and not literals: this loop does nothing else, so V8 observes that most of the first ones, which wait
 * for a server's first answer, survive. It would allocate all later literals in the old generation, as garbage of the benchmark, and
 * collecting that would be measured.
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

export function renderTenant(number: number): string {
  return number === whaleNumber ? whale : `tenant-${number}`;
}

/**
 * The subject of each request: every second one is the whale's, in random order; the others are subjects 0 … 99 999, of which subject
 * k occurs 1/(k+1) as often as the first (Zipf with exponent 1). The same in every process, for the same seed.
 */
export function drawSubjects(seed: number, count: number): Int32Array {
  const random = createRandom(seed);
  const drawOne = createZipf(subjects, random);
  return Int32Array.from({ length: count }, () => (random() < 0.5 ? whaleNumber : drawOne()));
}
