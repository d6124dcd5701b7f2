import { type ChildProcess, fork } from "node:child_process";
import type { ServerPorts, ServerRequest, ServerStart, ServerUsage } from "./measured-server.ts";

export interface MeasuredServer {
  readonly ports: ServerPorts;
  /** What it has used. With `decide`, after it has decided that many checks itself. */
  usage(request?: ServerRequest): Promise<ServerUsage>;
  stop(): void;
}

export async function startMeasuredServer(
  variables: Readonly<Record<string, string>>,
  policies: string,
): Promise<MeasuredServer> {
  // From source, the module is TypeScript as well, and finds the other packages' sources.
  const fromSource = import.meta.url.endsWith(".ts");
  const module = new URL(`measured-server.${fromSource ? "ts" : "js"}`, import.meta.url);
  const child = fork(module, {
    execArgv: fromSource ? ["--conditions=source"] : [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  // Not as arguments, which every user of the machine can list: the store's URL may have a password.
  const ports = await ask<ServerPorts>(child, { variables, policies });
  return {
    ports,
    usage: (request = { decide: 0 }) => ask<ServerUsage>(child, request),
    stop: () => void child.kill("SIGKILL"),
  };
}

function ask<Answer>(child: ChildProcess, request: ServerStart | ServerRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error("the measured server exited"));
    child.once("exit", onExit);
    child.once("message", (answer) => {
      child.off("exit", onExit);
      resolve(answer as Answer);
    });
    child.send(request);
  });
}
