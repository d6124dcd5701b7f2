import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const main: string = fileURLToPath(new URL("../../packages/cli/src/main.ts", import.meta.url));
const startWithinMs = 60_000;

/** A server in a separate process, as an operator runs it. */
export interface Sluice {
  readonly http: string;
  /** `127.0.0.1:34567` */
  readonly grpc: string;
  readonly respPort: number;
  /** The address of the control plane; empty if there is none. */
  readonly admin: string;
  readonly pid: number;
  /** Whether it is ready. False if it cannot be reached. */
  isReady(): Promise<boolean>;
  /** Resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Ends it and everything that it started. */
  kill(): Promise<void>;
  readonly log: string;
}

interface Listening {
  readonly message: string;
  readonly http: readonly string[];
  readonly grpc: readonly string[];
  readonly resp: readonly string[];
  readonly admin: readonly string[];
}

export function startSluice(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Sluice> {
  return startProgram(env, main, "serve", "--log-format", "json", ...args);
}

/** The same with another program, which logs where it listens. */
export function startProgram(
  env: Readonly<Record<string, string>>,
  program: string,
  ...args: readonly string[]
): Promise<Sluice> {
  return startCommand(env, [process.execPath, "-C", "source", program, ...args]);
}

/** The same with any command that becomes such a program. */
export async function startCommand(
  env: Readonly<Record<string, string>>,
  [command = "", ...args]: readonly string[],
): Promise<Sluice> {
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    env: {
      PATH: process.env.PATH,
      SLUICE_HTTP_PORT: "0",
      SLUICE_GRPC_PORT: "0",
      SLUICE_RESP_PORT: "0",
      SLUICE_ADMIN_PORT: "0",
      SLUICE_DEADLINE: "10s",
      ...env,
    },
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  const kill = async (): Promise<void> => {
    if (child.pid !== undefined && !hasEnded(child)) process.kill(-child.pid, "SIGKILL");
    await exited;
  };
  const listening = await new Promise<Listening>((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`the server ${why}:\n${log}`));
    const timer = setTimeout(fail, startWithinMs, "did not listen in time");
    child.once("close", (code) => fail(`ended with ${code}`));
    child.stdout.on("data", () => {
      const line = log.split("\n").find((one) => one.includes('"message":"listening"') && one.endsWith("}"));
      if (line === undefined) return;
      clearTimeout(timer);
      resolve(JSON.parse(line) as Listening);
    });
  }).catch(async (error: unknown) => {
    await kill();
    throw error;
  });
  const [http = ""] = listening.http;
  return {
    http,
    grpc: new URL(listening.grpc[0]!).host,
    respPort: Number(new URL(listening.resp[0]!).port),
    admin: listening.admin[0] ?? "",
    pid: child.pid!,
    isReady: () =>
      fetch(`${http}/readyz`, { headers: { connection: "close" } }).then(
        ({ ok }) => ok,
        () => false,
      ),
    stop(signal = "SIGTERM"): Promise<number | null> {
      child.kill(signal);
      return exited;
    },
    kill,
    get log(): string {
      return log;
    },
  };
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
