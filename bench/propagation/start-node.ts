import { spawn } from "node:child_process";
import path from "node:path";

const main = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "main.ts");

/** A server in a separate process, with a policy store. */
export interface BenchNode {
  readonly http: string;
  /** `grpc://127.0.0.1:34567`; undefined if it is off, the default. */
  readonly grpc: string | undefined;
  readonly admin: string;
  readonly pid: number;
  stop(): Promise<void>;
}

interface Listening {
  readonly http: [string];
  readonly grpc?: [string];
  readonly admin: [string];
}

export async function startNode(env: Readonly<Record<string, string>>): Promise<BenchNode> {
  const child = spawn(process.execPath, ["-C", "source", main, "serve", "--log-format", "json"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      PATH: process.env.PATH,
      SLUICE_HTTP_PORT: "0",
      SLUICE_GRPC_PORT: "off",
      SLUICE_ADMIN_PORT: "0",
      ...env,
    },
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let log = "";
  const listening = await new Promise<Listening>((resolve, reject) => {
    child.once("close", (code) => reject(new Error(`a node exited with ${code}:\n${log}`)));
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-100_000);
      const line = log.split("\n").find((one) => one.includes('"message":"listening"') && one.endsWith("}"));
      if (line !== undefined) resolve(JSON.parse(line) as Listening);
    });
  });
  return {
    http: listening.http[0],
    grpc: listening.grpc?.[0],
    pid: child.pid!,
    admin: listening.admin[0],
    async stop(): Promise<void> {
      child.kill();
      await ended;
    },
  };
}
