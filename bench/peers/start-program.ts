import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { findCores } from "./cores.ts";

const startWithinMs = 60_000;
const maxLogChars = 4_000;

/** A server in a separate process, with one core. */
export interface RunningProgram {
  readonly pid: number;
  stop(): Promise<void>;
}

export interface ProgramToStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** It has started when all of these accept connections. */
  readonly ports: readonly number[];
}

/**
 * Starts a program that can use only one core from its first moment, because runtimes decide by the cores they see how
 * many threads they start. It ends with this process.
 */
export async function startProgram({ command, args, env, ports }: ProgramToStart): Promise<RunningProgram> {
  const child = spawn("taskset", ["--cpu-list", `${findCores(0).server}`, command, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-maxLogChars);
    });
  const exited = once(child, "close");
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const stop = async (): Promise<void> => {
    kill();
    await exited;
    process.off("exit", kill);
  };
  const untilMs = performance.now() + startWithinMs;
  for (const port of ports) {
    while (!(await accepts(port))) {
      const ended = child.exitCode !== null || child.signalCode !== null;
      if (ended || performance.now() > untilMs) {
        await stop();
        throw new Error(`${command} ${ended ? "ended" : `did not listen on port ${port} in time`}:\n${log}`);
      }
      await wait(50);
    }
  }
  return { pid: child.pid!, stop };
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
