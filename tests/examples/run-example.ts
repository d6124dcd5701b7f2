import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";

const root = path.join(import.meta.dirname, "..", "..");

export interface RunningExample {
  /** Everything it has printed so far. */
  readonly output: () => string;
  /** Resolves with the match when it has printed something like this. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with its exit code when it has ended. */
  readonly ended: Promise<number | null>;
  stop(): Promise<void>;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
}

/** Runs an example by the command that its README gives. */
export function runExample(name: string, environment: Readonly<Record<string, string>> = {}): RunningExample {
  const child: ChildProcess = spawn(process.execPath, [path.join(root, "scripts", "example.mjs"), name], {
    cwd: root,
    env: { ...process.env, PORT: "0", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    // A group of processes: the command starts the example in another one, which a crash has to end as well.
    detached: true,
  });
  let text = "";
  const waiting = new Set<() => void>();
  const hear = (data: Buffer): void => {
    text += data.toString();
    for (const look of waiting) look();
  };
  child.stdout?.on("data", hear);
  child.stderr?.on("data", hear);
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return {
    output: () => text,
    ended,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = pattern.exec(text);
          if (found === null) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        void ended.then(() => reject(new Error(`the example ended before it printed ${pattern}:\n${text}`)));
        look();
      }),
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
    async kill() {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        process.kill(-child.pid, "SIGKILL");
      }
      await ended;
    },
  };
}
