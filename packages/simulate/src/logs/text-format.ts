import type { SimulatedRequest } from "../replay/simulated-request.ts";
import { type LineParser, type LineParserOptions, type LineValues, listCarried } from "./line-parser.ts";
import { buildRequest } from "./request-builder.ts";
import { lastAddress, withoutPort } from "./request-target.ts";
import { splitFields } from "./text-fields.ts";

/** Where the fields of a text format are, counted from 1. */
export interface TextFormat {
  readonly name: string;
  readonly leastFields: number;
  readonly headers: Readonly<Record<string, number>>;
  /** Absent: by `splitFields`. */
  split?(line: string): readonly string[];
  read(field: (number: number) => string): LineValues;
}

/** `10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2326 "referer" "agent"`; Traefik adds four fields. */
export const combinedFormat: TextFormat = {
  name: "combined",
  leastFields: 6,
  headers: { referer: 8, "user-agent": 9 },
  split(line) {
    // The user's name, before the time, may contain spaces.
    const end = line.indexOf(" [");
    const [address = "", ident = "", ...user] = line.slice(0, Math.max(0, end)).split(" ");
    return [address, ident, user.join(" "), ...splitFields(line.slice(end + 1))];
  },
  read: (field) => ({ time: field(4), ip: field(1), ...readRequestLine(field(5)), status: readStatus(field(6)) }),
};

/** `[2016-04-15T20:17:00.310Z] "POST /a HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "agent" "id" "authority" "upstream"` */
export const envoyFormat: TextFormat = {
  name: "envoy",
  leastFields: 9,
  headers: { "x-forwarded-for": 9, "user-agent": 10, "x-request-id": 11, ":authority": 12, host: 12 },
  read: (field) => ({
    time: field(1),
    ip: lastAddress(field(9)),
    ...readRequestLine(field(2)),
    status: readStatus(field(3)),
  }),
};

/** `https 2018-07-02T22:23:00.186641Z elb 192.0.2.1:2817 10.0.0.1:80 …`: documented field by field. */
export const albFormat: TextFormat = {
  name: "alb",
  leastFields: 14,
  headers: { "user-agent": 14, host: 19 },
  read: (field) => ({
    // When the request arrived; the second field is when the answer left.
    time: field(22) === "" || field(22) === "-" ? field(2) : field(22),
    ip: withoutPort(field(4)),
    ...readRequestLine(field(13)),
    status: readStatus(field(9)),
  }),
};

/** Reads a text format field by field. */
export class TextParser implements LineParser {
  readonly carried: readonly string[];
  readonly #format: TextFormat;
  readonly #options: LineParserOptions;
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(format: TextFormat, options: LineParserOptions) {
    this.#format = format;
    this.#options = options;
    this.#numbers = findNumbers(format, options);
    this.carried = listCarried(options.map);
  }

  parse(bytes: Buffer, start: number, end: number): SimulatedRequest | undefined {
    const line = bytes.toString("utf8", start, end);
    const fields = this.#format.split?.(line) ?? splitFields(line);
    if (fields.length < this.#format.leastFields) return undefined;
    const field = (number: number): string => fields[number - 1] ?? "";
    const usual = this.#format.read(field);
    if (usual.target === undefined) return undefined;
    return buildRequest(usual, this.#options, (name) => {
      const number = this.#numbers.get(name);
      return number === undefined ? undefined : field(number);
    });
  }
}

function findNumbers({ name: format, headers }: TextFormat, { map }: LineParserOptions): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  for (const [name, source] of map) {
    if (source.kind === "field") numbers.set(name, source.number);
    if (source.kind === "json")
      throw new RangeError(`${name} is read from JSON, and ${format} logs are text; use ${name}=field:NUMBER`);
    if (source.kind !== "header") continue;
    const number = headers[source.name];
    if (number === undefined)
      throw new RangeError(
        `${format} logs have the headers ${Object.keys(headers).join(", ")}, not ${source.name}; if yours has it, use ${name}=field:NUMBER`,
      );
    numbers.set(name, number);
  }
  return numbers;
}

/** `GET /a HTTP/1.1`. A line that is no request has no target. */
function readRequestLine(line: string): Pick<LineValues, "method" | "target"> {
  const [, method, target] = /^([A-Za-z][\w-]*) (\S+)(?: \S*)?$/.exec(line) ?? [];
  return { method, target };
}

function readStatus(text: string): number {
  return /^\d{3}$/.test(text) ? Number(text) : Number.NaN;
}
