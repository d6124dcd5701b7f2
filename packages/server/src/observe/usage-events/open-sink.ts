import { fileURLToPath } from "node:url";
import { parseRedisUrl, type RedisServers } from "@sluice/redis";
import { SluiceError } from "sluice";
import { SettingError } from "../../settings/parse-settings.ts";
import type { EventSink } from "./event-sink.ts";
import type { KafkaSinkOptions } from "./kafka-sink.ts";

export interface OpenSinkOptions {
  /** The number of this process among several behind the same ports: they cannot share a file. */
  readonly worker?: number | undefined;
  /** Reads the bearer token for HTTP, at each send. Undefined: none. */
  readonly readToken?: (() => Promise<string | undefined>) | undefined;
  /** The Kafka cluster that settings name, and its client. Throws a `SettingError` if there is none. */
  readonly kafka: () => Promise<Pick<KafkaSinkOptions, "kafka" | "cluster">>;
  /** The servers that hold the counters; undefined if they are in this process. */
  readonly counterServers: () => Promise<RedisServers | undefined>;
}

/**
 * Opens the sink that a URL names. Does not connect yet: a receiver that is down does not keep a server from starting.
 * Throws a `SettingError` if it is no sink's URL.
 */
export async function openSink(url: string, options: OpenSinkOptions): Promise<EventSink> {
  switch (/^([a-z]+)(?:\+[a-z]+)?:/.exec(url)?.[1]) {
    case "http":
    case "https": {
      if (!URL.canParse(url)) throw refuse("has an http address that is not valid");
      const { createHttpSink } = await import("./http-sink.ts");
      return createHttpSink({ url, readToken: options.readToken });
    }
    case "redis":
    case "rediss":
    case "valkey":
    case "valkeys":
    case "unix":
      return openRedisSink(url, options);
    case "kafka":
      return openKafkaSink(url, options);
    case "file":
      return openFileSink(url, options.worker);
    default:
      throw refuse("should name http(s)://…, redis(s)://…, redis:, kafka: or file:PATH");
  }
}

const defaultStream = "usage.events";
const defaultStreamLength = 100_000;
const maxStreamLength = 1_000_000_000;

async function openRedisSink(url: string, { counterServers }: OpenSinkOptions): Promise<EventSink> {
  const { address, parameters } = splitParameters(url, ["stream", "max_length"]);
  const stream = parameters.get("stream") ?? defaultStream;
  if (!/^[\w.:-]{1,128}$/.test(stream)) throw refuse("has a stream that is not 1 to 128 letters, digits or . _ : -");
  const maxLength = readWholeNumber(parameters, "max_length", defaultStreamLength, maxStreamLength);
  const servers = address === "redis:" ? await counterServers() : parseServers(address);
  if (servers === undefined)
    throw refuse("names the counters' servers (redis:), but counters are in this process's memory; name a server");
  const { createRedisSink } = await import("./redis-sink.ts");
  return createRedisSink({ servers, stream, maxLength });
}

function parseServers(address: string): RedisServers {
  try {
    return parseRedisUrl(address);
  } catch (error) {
    throw refuse(`has an address that ${error instanceof SluiceError ? error.problems[0]?.message : "is not valid"}`);
  }
}

async function openKafkaSink(url: string, options: OpenSinkOptions): Promise<EventSink> {
  const { address, parameters } = splitParameters(url, ["topic", "compression"]);
  if (address !== "kafka:") throw refuse("names Kafka brokers; write kafka: here, and the brokers into SLUICE_KAFKA");
  const topic = parameters.get("topic") ?? defaultStream;
  if (!/^[\w.-]{1,249}$/.test(topic)) throw refuse("has a topic that is not 1 to 249 letters, digits or . _ -");
  const { createKafkaSink, kafkaCompressions } = await import("./kafka-sink.ts");
  const wanted = parameters.get("compression") ?? "gzip";
  const compression = kafkaCompressions.find((one) => one === wanted);
  if (compression === undefined) throw refuse(`has a compression that is not ${kafkaCompressions.join(", ")}`);
  return createKafkaSink({ ...(await options.kafka()), topic, compression });
}

const defaultFileBytes = 100 * 1024 * 1024;
const maxFileBytes = 1024 ** 4;
const defaultKeptFiles = 5;
const maxKeptFiles = 1_000;

async function openFileSink(url: string, worker: number | undefined): Promise<EventSink> {
  const { address, parameters } = splitParameters(url, ["max_bytes", "keep"]);
  const maxBytes = readWholeNumber(parameters, "max_bytes", defaultFileBytes, maxFileBytes);
  const keep = readWholeNumber(parameters, "keep", defaultKeptFiles, maxKeptFiles);
  const path = address.startsWith("file://") ? pathFromUrl(address) : address.slice("file:".length);
  if (path === "") throw refuse("names no file; write file:PATH");
  const { createFileSink } = await import("./file-sink.ts");
  return createFileSink({ path: workerPath(path, worker), maxBytes, keep });
}

function pathFromUrl(address: string): string {
  try {
    return fileURLToPath(address);
  } catch {
    throw refuse("has a file address that is not valid; write file:PATH, or file:///PATH");
  }
}

/** Several processes behind the same ports have a file each. */
export function workerPath(path: string, worker: number | undefined): string {
  return worker === undefined ? path : `${path}.worker${worker}`;
}

function splitParameters(
  url: string,
  known: readonly string[],
): { readonly address: string; readonly parameters: URLSearchParams } {
  const [address = "", query = ""] = url.split("?", 2);
  const parameters = new URLSearchParams(query);
  const unknown = [...parameters.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw refuse(`has the parameter ${JSON.stringify(unknown)}; known ones are ${known.join(" and ")}`);
  return { address, parameters };
}

function readWholeNumber(parameters: URLSearchParams, name: string, fallback: number, most: number): number {
  const text = parameters.get(name);
  if (text === null) return fallback;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= (name === "keep" ? 0 : 1) && value <= most) return value;
  throw refuse(`has ${name}=${text}; it should be a whole number up to ${most}`);
}

/** The URL may contain a password, and is not repeated. */
function refuse(message: string): SettingError {
  return new SettingError(["usageEvents"], message);
}
