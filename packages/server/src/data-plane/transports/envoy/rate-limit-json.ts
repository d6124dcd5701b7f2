/** Envoy's messages in proto3's JSON. */
import {
  RateLimitResponse_Code as Code,
  type RateLimitDescriptor,
  type RateLimitRequest,
  type RateLimitResponse,
  RateLimitUnit,
  RateLimitResponse_RateLimit_Unit as Unit,
} from "@sluice/protocol/envoy";
import { boolean, type JsonSchema, listOf, objectOf, type ReadOf, type Shape, text } from "sluice/shape";

type Fields = Readonly<Record<string, Shape<unknown>>>;

/** A message: fields in either spelling, `hits_addend` or `hitsAddend`; null is the same as absent. */
function message<F extends Fields>(fields: F): Shape<{ readonly [K in keyof F]?: ReadOf<F[K]> }> {
  const known = objectOf({}, fields);
  return {
    ...known,
    read(value, reading) {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return known.read(value, reading);
      const read: Record<string, unknown> = Object.create(null);
      for (const [key, one] of Object.entries(value)) {
        const camel = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
        const name = Object.hasOwn(fields, camel) ? camel : key;
        if (Object.hasOwn(read, name)) reading.keyProblem(key, "is there in both spellings; write it once");
        if (one !== null) read[name] = one;
      }
      return known.read(read, reading);
    },
  };
}

/** A whole number, or the text of one: JSON's numbers do not hold 64 bits. */
function whole(max: number): Shape<number> {
  return {
    name: `a whole number from 0 to ${max}`,
    schema: {
      anyOf: [
        { type: "integer", minimum: 0 },
        { type: "string", pattern: "^[0-9]+$" },
      ],
    },
    read(value, reading) {
      const read = typeof value === "string" && /^\d{1,20}$/.test(value) ? Number(value) : value;
      if (typeof read === "number" && Number.isInteger(read) && read >= 0 && read <= max) return read;
      return reading.problem(`must be a whole number from 0 to ${max}, but is ${JSON.stringify(value)?.slice(0, 64)}`);
    },
  };
}

const unitNames = Object.keys(RateLimitUnit) as (keyof typeof RateLimitUnit)[];

const unit: Shape<RateLimitUnit> = {
  name: `one of ${unitNames.join(", ")}`,
  schema: { anyOf: [{ enum: unitNames }, { type: "integer" }] },
  read(value, reading) {
    const name = unitNames.find((one) => one === value || RateLimitUnit[one] === value);
    if (name !== undefined) return RateLimitUnit[name];
    return reading.problem(`must be ${this.name}, but is ${JSON.stringify(value)?.slice(0, 64)}`);
  },
};

const anyText = text({ min: 0, max: 1024 * 1024 });

const descriptor = message({
  entries: listOf(message({ key: anyText, value: anyText })),
  limit: message({ requestsPerUnit: whole(2 ** 32 - 1), unit }),
  hitsAddend: whole(2 ** 64 - 1),
  isNegativeHits: boolean,
});

const request = message({ domain: anyText, descriptors: listOf(descriptor), hitsAddend: whole(2 ** 32 - 1) });

export const rateLimitRequestShape: Shape<RateLimitRequest> = {
  ...request,
  read(value, reading) {
    const read = request.read(value, reading);
    if (typeof read === "symbol") return read;
    const { domain = "", descriptors = [], hitsAddend = 0 } = read;
    return { domain, descriptors: descriptors.map(descriptorFromJson), hitsAddend };
  },
};

function descriptorFromJson({
  entries = [],
  limit,
  hitsAddend,
  isNegativeHits,
}: ReadOf<typeof descriptor>): RateLimitDescriptor {
  return {
    entries: entries.map(({ key = "", value = "" }) => ({ key, value })),
    limit: limit && { requestsPerUnit: limit.requestsPerUnit ?? 0, unit: limit.unit ?? RateLimitUnit.UNKNOWN },
    hitsAddend,
    isNegativeHits: isNegativeHits ?? false,
  };
}

export interface RateLimitResponseJson {
  readonly overallCode: string;
  readonly statuses: readonly {
    readonly code: string;
    readonly currentLimit?: { readonly requestsPerUnit: number; readonly unit: string; readonly name?: string };
    readonly limitRemaining?: number;
    /** `3.500s` */
    readonly durationUntilReset?: string;
  }[];
  readonly responseHeadersToAdd?: readonly { readonly key: string; readonly value: string }[];
}

/** The answer's schema, for documentation. */
export const rateLimitResponseSchema: JsonSchema = {
  type: "object",
  required: ["overallCode", "statuses"],
  properties: {
    overallCode: { enum: ["OK", "OVER_LIMIT"] },
    statuses: {
      type: "array",
      items: {
        type: "object",
        required: ["code"],
        properties: {
          code: { enum: ["OK", "OVER_LIMIT"] },
          currentLimit: {
            type: "object",
            required: ["requestsPerUnit", "unit"],
            properties: {
              requestsPerUnit: { type: "integer" },
              unit: { enum: Object.keys(Unit) },
              name: { type: "string" },
            },
          },
          limitRemaining: { type: "integer" },
          durationUntilReset: { type: "string", examples: ["45s", "3.500s"] },
        },
      },
    },
    responseHeadersToAdd: {
      type: "array",
      items: {
        type: "object",
        required: ["key", "value"],
        properties: { key: { type: "string" }, value: { type: "string" } },
      },
    },
  },
};

export function rateLimitResponseJson({
  overallCode,
  statuses,
  responseHeadersToAdd,
}: RateLimitResponse): RateLimitResponseJson {
  return {
    overallCode: enumName(Code, overallCode),
    statuses: statuses.map(({ code, currentLimit: limit, limitRemaining, durationUntilReset: reset }) => ({
      code: enumName(Code, code),
      ...(limit && {
        currentLimit: {
          requestsPerUnit: limit.requestsPerUnit,
          unit: enumName(Unit, limit.unit),
          ...(limit.name !== "" && { name: limit.name }),
        },
      }),
      ...((limit !== undefined || limitRemaining > 0) && { limitRemaining }),
      ...(reset && { durationUntilReset: durationJson(reset) }),
    })),
    ...(responseHeadersToAdd.length > 0 && {
      responseHeadersToAdd: responseHeadersToAdd.map(({ key, value }) => ({ key, value })),
    }),
  };
}

function enumName(names: Readonly<Record<string, number>>, value: number): string {
  return Object.keys(names).find((name) => names[name] === value) ?? "UNKNOWN";
}

function durationJson({ seconds, nanos }: { readonly seconds: number; readonly nanos: number }): string {
  return nanos === 0 ? `${seconds}s` : `${seconds}.${String(Math.round(nanos / 1e6)).padStart(3, "0")}s`;
}
