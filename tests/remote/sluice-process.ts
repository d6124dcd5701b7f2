import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { repositoryRoot } from "../repository/source-tree.ts";

const main = path.join(repositoryRoot, "packages", "cli", "src", "main.ts");

/** A Sluice server in a separate process. */
export interface SluiceProcess {
  readonly http: string;
  readonly grpc: string;
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly child: ChildProcess;
  /** How it ended: its exit code, or the signal. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
  /** Kills it. */
  close(): Promise<void>;
}

/** Starts a server with these arguments, on free ports by default, and waits until it listens. */
export async function startSluice(...args: readonly string[]): Promise<SluiceProcess> {
  const ports = ["--port", "0", "--grpc-port", "0"].filter((_, i, all) => !args.includes(all[i - (i % 2)]!));
  // Even on a busy machine counters answer within these deadlines, so that only the client's matter.
  const usual = ["serve", "--log-format", "json", "--max-checks-per-second", "0", "--deadline", "5s"];
  const child = spawn(process.execPath, ["-C", "source", main, ...usual, ...ports, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH },
  });
  const exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals | null);
  const lines: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (text: string) => lines.push(text));
  const listening = new Promise<{ readonly http: readonly string[]; readonly grpc: readonly string[] }>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(line);
      if (!line.includes('"listening"')) return;
      resolve(JSON.parse(line));
    });
  });
  const addresses = await Promise.race([listening, exited.then(() => undefined)]);
  if (addresses === undefined) throw new Error(`the server ended before it listened:\n${lines.join("\n")}`);
  const [http = ""] = addresses.http;
  const [grpc = ""] = addresses.grpc;
  return {
    http,
    grpc,
    httpPort: findPort(http),
    grpcPort: findPort(grpc),
    child,
    exited,
    async close() {
      child.kill("SIGCONT");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

function findPort(url: string): number {
  return Number(/:(\d+)$/.exec(url)?.[1]);
}
