import { type ChildProcess, fork } from "node:child_process";
import path from "node:path";
import type { Ports, Used } from "./served.ts";

/** A server in a separate process. */
export interface Served {
  readonly ports: Ports;
  /** Its CPU time and memory; `afterCollection` for memory that is really in use. */
  used(afterCollection?: boolean): Promise<Used>;
  stop(): void;
}

export async function startServed(name: string, ...args: readonly string[]): Promise<Served> {
  const child = fork(path.join(import.meta.dirname, "served.ts"), [name, ...args], { execArgv: ["--expose-gc"] });
  const ports = await ask<Ports>(child);
  return {
    ports,
    used: (afterCollection = false) => ask<Used>(child, { afterCollection }),
    stop: () => void child.kill(),
  };
}

function ask<Answer>(child: ChildProcess, message?: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error("a server exited"));
    child.once("exit", onExit);
    child.once("message", (answer) => {
      child.off("exit", onExit);
      resolve(answer as Answer);
    });
    if (message !== undefined) child.send(message);
  });
}
