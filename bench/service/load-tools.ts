import { execFile } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The results of a load tool: how many requests succeeded, how fast, how long each took. */
export interface Load {
  readonly perSecond: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** Bytes of all answers without their headers. */
  readonly bodyBytes?: number;
}

/** h2load, posting the same body over and over on few connections with many streams. */
export async function loadByH2load(url: string, bodyFile: string, size: LoadSize): Promise<Load> {
  const { stdout } = await run("h2load", [
    `--requests=${size.requests}`,
    `--clients=${size.connections}`,
    `--max-concurrent-streams=${size.streams}`,
    `--data=${bodyFile}`,
    "--header=content-type: application/grpc",
    "--header=te: trailers",
    url,
  ]);
  return readH2load(stdout, size.requests);
}

function readH2load(stdout: string, requests: number): Load {
  const succeeded = Number(/(\d+) succeeded/.exec(stdout)?.[1]);
  const ok = Number(/status codes: (\d+) 2xx/.exec(stdout)?.[1]);
  if (succeeded !== requests || ok !== requests) throw new Error(`h2load reported failures:\n${stdout}`);
  return {
    perSecond: Number(/finished in [^,]+, ([\d.]+) req\/s/.exec(stdout)?.[1]),
    bodyBytes: Number(/\((\d+)\) data/.exec(stdout)?.[1]),
  };
}

/** h2load over HTTP/1.1, one request at a time on each connection. */
export async function loadByHttp1(url: string, bodyFile: string, size: Omit<LoadSize, "streams">): Promise<Load> {
  const { stdout } = await run("h2load", [
    "--h1",
    `--requests=${size.requests}`,
    `--clients=${size.connections}`,
    `--data=${bodyFile}`,
    "--header=content-type: application/json",
    url,
  ]);
  return readH2load(stdout, size.requests);
}

/** How long answers take that h2load requests at a fixed rate, in milliseconds. */
export interface PacedLoad {
  readonly url: string;
  readonly bodyFile: string;
  /** HTTP/1.1 sends one request at a time on each connection. */
  readonly protocol: "grpc" | "http";
  readonly connections: number;
  readonly perSecond: number;
  readonly seconds: number;
  /** Where h2load may write what each request took. */
  readonly logFile: string;
}

export async function latenciesByH2load(load: PacedLoad): Promise<readonly number[]> {
  const { stdout } = await run("h2load", [
    `--duration=${load.seconds * 1_000}ms`,
    `--clients=${load.connections}`,
    `--rps=${Math.max(1, Math.round(load.perSecond / load.connections))}`,
    `--log-file=${load.logFile}`,
    `--data=${load.bodyFile}`,
    ...(load.protocol === "grpc"
      ? ["--max-concurrent-streams=64", "--header=content-type: application/grpc", "--header=te: trailers"]
      : ["--h1", "--header=content-type: application/json"]),
    load.url,
  ]);
  const failed = Number(/(\d+) failed/.exec(stdout)?.[1]);
  if (failed !== 0) throw new Error(`h2load reported failures:\n${stdout}`);
  // A line is the start in microseconds, the status, and how long it took in microseconds.
  const lines = readFileSync(load.logFile, "utf8").trimEnd().split("\n");
  rmSync(load.logFile);
  return lines.map((line) => Number(line.split("\t")[2]) / 1_000);
}

export interface LoadSize {
  readonly requests: number;
  readonly connections: number;
  readonly streams: number;
}

/** wrk, with a script that varies the subject. */
export async function loadByWrk(url: string, script: string, seconds: number, connections: number): Promise<Load> {
  const { stdout } = await run("wrk", [
    "--threads=1",
    `--connections=${connections}`,
    `--duration=${seconds}s`,
    // Two seconds by default, which a busy machine exceeds.
    "--timeout=30s",
    "--latency",
    `--script=${script}`,
    url,
  ]);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`wrk reported failures:\n${stdout}`);
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
    p50Ms: readMilliseconds(/50%\s+([\d.]+)(us|ms|s)/.exec(stdout)),
    p99Ms: readMilliseconds(/99%\s+([\d.]+)(us|ms|s)/.exec(stdout)),
  };
}

function readMilliseconds(found: RegExpExecArray | null): number {
  const unit = { us: 0.001, ms: 1, s: 1_000 }[found?.[2] ?? "ms"] ?? Number.NaN;
  return Number(found?.[1]) * unit;
}

/** redis-benchmark, with subjects at random. */
export async function loadByRedisBenchmark(
  port: number,
  requests: number,
  command: readonly string[],
  { connections, pipeline }: RespSize = { connections: 8, pipeline: 16 },
): Promise<Load> {
  const { stdout } = await run("redis-benchmark", [
    ...["-h", "127.0.0.1", "-p", `${port}`, "-n", `${requests}`, "-c", `${connections}`, "-P", `${pipeline}`],
    ...["-r", "1000", "--csv", "-e", ...command],
  ]);
  const line = stdout.trimEnd().split("\n").at(-1) ?? "";
  const perSecond = Number(/"([\d.]+)"/.exec(line.replace(/^"[^"]*",/, ""))?.[1]);
  if (!(perSecond > 0)) throw new Error(`redis-benchmark reported failures:\n${stdout}`);
  return { perSecond };
}

export interface RespSize {
  readonly connections: number;
  /** Commands that are sent before the first answer has come. */
  readonly pipeline: number;
}
