import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { findFreePort, loopback } from "./find-free-port.ts";
import { hasEnded, watchOver } from "./server-process.ts";
import { waitUntil } from "./wait-until.ts";

const startWithinMs = 15_000;
const startAttempts = 5;
const maxLogChars = 4_000;

/** A gateway that runs as a separate process, on loopback. */
export interface TestGateway {
  /** `http://127.0.0.1:12345` */
  readonly url: string;
  readonly port: number;
  /** The end of its output. */
  readonly log: string;
  close(): Promise<void>;
}

export interface GatewayProgram {
  readonly program: "nginx" | "caddy" | "prometheus";
  /** Its configuration, for its folder and the port that it listens on. */
  configFor(folder: string, port: number): string;
  argsFor(folder: string, configFile: string, port: number): readonly string[];
}

/** Starts a gateway in a separate folder, and resolves when it accepts connections. */
export async function startGateway(gateway: GatewayProgram): Promise<TestGateway> {
  for (let attempt = 1; ; attempt += 1) {
    const folder = await mkdtemp(path.join(tmpdir(), `sluice-${gateway.program}-`));
    const started = await start(gateway, folder, await findFreePort());
    if (started.accepting) return started;
    await started.close();
    if (attempt === startAttempts || !/address already in use/i.test(started.log))
      throw new Error(`${gateway.program} did not start. Its log ends with:\n${started.log.trim()}`);
  }
}

async function start(
  { program, configFor, argsFor }: GatewayProgram,
  folder: string,
  port: number,
): Promise<TestGateway & { readonly accepting: boolean }> {
  const file = path.join(folder, "config");
  await writeFile(file, configFor(folder, port));
  const child = spawn(program, argsFor(folder, file, port), {
    cwd: folder,
    env: { PATH: `${process.env.PATH ?? ""}${path.delimiter}/usr/bin${path.delimiter}/usr/sbin`, HOME: folder },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  const note = (text: string): void => {
    log = (log + text).slice(-maxLogChars);
  };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => note(String(chunk)));
  child.once("error", (error) => note(`${program} does not start: ${error.message}`));
  const watchman = child.pid === undefined ? undefined : watchOver(child.pid, folder);
  child.once("exit", () => watchman?.stdin?.write("ended\n"));
  const accepting = await waitUntil(`${program} accepts connections`, startWithinMs, async () =>
    hasEnded(child) ? false : (await accepts(port)) ? true : undefined,
  ).catch(() => false);
  return {
    url: `http://${loopback}:${port}`,
    port,
    accepting,
    get log(): string {
      return log;
    },
    async close(): Promise<void> {
      if (!hasEnded(child)) {
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
      watchman?.kill("SIGKILL");
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, loopback);
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
