import type { SimulatedRequest } from "../replay/simulated-request.ts";
import { type FieldMap, type FieldSource, findByPath } from "./field-map.ts";
import { type LineParser, type LineParserOptions, type LineValues, listCarried } from "./line-parser.ts";
import { buildRequest } from "./request-builder.ts";
import { lastAddress } from "./request-target.ts";

/** Where a format of JSON lines has what. Of several paths the first one that leads somewhere counts. */
export interface JsonFormat {
  readonly name: string;
  readonly time: readonly JsonPath[];
  readonly ip: readonly JsonPath[];
  readonly method: readonly JsonPath[];
  readonly target: readonly JsonPath[];
  readonly status: readonly JsonPath[];
  /** Where a request header is, by its name in lower case. */
  header(name: string): readonly JsonPath[];
}

type JsonPath = readonly string[];

const at = (...names: readonly string[]): readonly JsonPath[] => names.map((name) => [name]);

/** Headers under names of their own, in the spellings that people choose. */
const plainHeader = (name: string): readonly JsonPath[] => at(name, name.replaceAll("-", "_"));
/** `X-Tenant` */
const titled = (name: string): string =>
  name.replaceAll(/(^|-)([a-z])/g, (_all, dash, letter) => dash + letter.toUpperCase());

export const jsonFormats: readonly JsonFormat[] = [
  {
    name: "caddy",
    time: at("ts"),
    ip: [
      ["request", "client_ip"],
      ["request", "remote_ip"],
      ["request", "remote_addr"],
    ],
    method: [["request", "method"]],
    target: [["request", "uri"]],
    status: at("status"),
    header: (name) => [
      ["request", "headers", titled(name)],
      ["request", "headers", name],
    ],
  },
  {
    name: "cloudflare",
    time: at("EdgeStartTimestamp"),
    ip: at("ClientIP"),
    method: at("ClientRequestMethod"),
    target: at("ClientRequestURI", "ClientRequestPath"),
    status: at("EdgeResponseStatus"),
    header: (name) => [
      ["RequestHeaders", name],
      ...at(...(name === "user-agent" ? ["ClientRequestUserAgent"] : name === "host" ? ["ClientRequestHost"] : [])),
    ],
  },
  {
    name: "traefik",
    time: at("StartUTC", "StartLocal", "time"),
    ip: at("ClientHost", "ClientAddr"),
    method: at("RequestMethod"),
    target: at("RequestPath"),
    status: at("DownstreamStatus", "OriginStatus"),
    header: (name) => at(`request_${titled(name)}`, `request_${name}`),
  },
  {
    name: "envoy-json",
    time: at("start_time"),
    ip: at("x_forwarded_for", "downstream_remote_address", "downstream_remote_address_without_port"),
    method: at("method", ":method"),
    target: at("x_envoy_original_path", "path", ":path"),
    status: at("response_code"),
    header: plainHeader,
  },
];

/** JSON of one's own: a map says where everything is. These names are tried if it does not. */
export const anyJson: JsonFormat = {
  name: "json",
  time: at("time", "timestamp", "@timestamp", "ts", "time_iso8601", "time_local", "msec"),
  ip: at("ip", "remote_addr", "client_ip", "remote_ip"),
  method: at("method", "request_method"),
  target: at("path", "uri", "request_uri", "url", "endpoint"),
  status: at("status", "response_code", "status_code"),
  header: plainHeader,
};

export class JsonParser implements LineParser {
  readonly carried: readonly string[];
  readonly #format: JsonFormat;
  readonly #options: LineParserOptions;
  readonly #paths: ReadonlyMap<string, readonly JsonPath[]>;

  constructor(format: JsonFormat, options: LineParserOptions) {
    this.#format = format;
    this.#options = options;
    this.#paths = findPaths(format, options.map);
    this.carried = listCarried(options.map);
  }

  parse(bytes: Buffer, start: number, end: number): SimulatedRequest | undefined {
    let line: unknown;
    try {
      line = JSON.parse(bytes.toString("utf8", start, end));
    } catch {
      return undefined;
    }
    if (typeof line !== "object" || line === null) return undefined;
    const { time, ip, method, target, status } = this.#format;
    const address = findText(line, ip);
    const usual: LineValues = {
      time: findFirst(line, time),
      ip: address === undefined ? undefined : lastAddress(address),
      method: findText(line, method),
      target: findText(line, target),
      status: Number(findFirst(line, status)),
    };
    return buildRequest(usual, this.#options, (name) => findFirst(line, this.#paths.get(name) ?? []));
  }
}

function findPaths(format: JsonFormat, map: FieldMap): ReadonlyMap<string, readonly JsonPath[]> {
  const found = new Map<string, readonly JsonPath[]>();
  for (const [name, source] of map) {
    if (source.kind === "field")
      throw new RangeError(
        `${name} is read from a numbered field, and ${format.name} logs are JSON; use ${name}=json:$.PATH`,
      );
    found.set(name, listPaths(format, source));
  }
  return found;
}

function listPaths(format: JsonFormat, source: FieldSource): readonly JsonPath[] {
  if (source.kind === "json") return [source.path];
  return source.kind === "header" ? format.header(source.name) : [];
}

function findFirst(line: object, paths: readonly JsonPath[]): unknown {
  for (const path of paths) {
    const found = findByPath(line, path);
    if (found !== undefined && found !== null && found !== "" && found !== "-") return found;
  }
  return undefined;
}

function findText(line: object, paths: readonly JsonPath[]): string | undefined {
  const found = findFirst(line, paths);
  return typeof found === "string" ? found : undefined;
}
