import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The results of a load tool: how many requests succeeded, how fast, how long each took. */
export interface Load {
  readonly perSecond: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
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
  const succeeded = Number(/(\d+) succeeded/.exec(stdout)?.[1]);
  const ok = Number(/status codes: (\d+) 2xx/.exec(stdout)?.[1]);
  if (succeeded !== size.requests || ok !== size.requests) throw new Error(`h2load reported failures:\n${stdout}`);
  return { perSecond: Number(/finished in [^,]+, ([\d.]+) req\/s/.exec(stdout)?.[1]) };
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

/** redis-benchmark, with pipelines of 16 and subjects at random. */
export async function loadByRedisBenchmark(port: number, requests: number, command: readonly string[]): Promise<Load> {
  const { stdout } = await run("redis-benchmark", [
    ...["-h", "127.0.0.1", "-p", `${port}`, "-n", `${requests}`, "-c", "8", "-P", "16", "-r", "1000", "--csv", "-e"],
    ...command,
  ]);
  const line = stdout.trimEnd().split("\n").at(-1) ?? "";
  const perSecond = Number(/"([\d.]+)"/.exec(line.replace(/^"[^"]*",/, ""))?.[1]);
  if (!(perSecond > 0)) throw new Error(`redis-benchmark reported failures:\n${stdout}`);
  return { perSecond };
}
