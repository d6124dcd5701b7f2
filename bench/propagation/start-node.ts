import { spawn } from "node:child_process";
import path from "node:path";

const main = path.join(import.meta.dirname, "..", "..", "packages", "server", "src", "main.ts");

/** A server in a process of its own, with a policy store. */
export interface BenchNode {
  readonly http: string;
  readonly admin: string;
  stop(): Promise<void>;
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
  const listening = await new Promise<{ http: [string]; admin: [string] }>((resolve, reject) => {
    child.once("close", (code) => reject(new Error(`a node ended with ${code}:\n${log}`)));
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-100_000);
      const line = log.split("\n").find((one) => one.includes('"message":"listening"') && one.endsWith("}"));
      if (line !== undefined) resolve(JSON.parse(line) as { http: [string]; admin: [string] });
    });
  });
  return {
    http: listening.http[0],
    admin: listening.admin[0],
    async stop(): Promise<void> {
      child.kill();
      await ended;
    },
  };
}
