import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { findFreePort, loopback } from "./find-free-port.ts";
import { type Argument, ReplyError, RespConnection } from "./resp-connection.ts";
import type { Flavor, ServerState, TestServer } from "./test-server.ts";
import { waitUntil } from "./wait-until.ts";

const startWithinMs = 15_000;
const startAttempts = 5;
const maxLogChars = 4_000;

/** The place where a process will be started. */
export interface ServerPlace {
  readonly folder: string;
  readonly port: number;
  readonly unixSocket: string;
}

export interface ProcessOptions {
  readonly flavor: Flavor;
  readonly tls: boolean;
  /** The command line for a place; files that it names may be written now. */
  argsFor(place: ServerPlace): Promise<readonly string[]>;
}

/** Starts a server at a separate place, and resolves when it answers. */
export async function startProcess(options: ProcessOptions): Promise<TestServer> {
  for (let attempt = 1; ; attempt += 1) {
    const folder = await mkdtemp(path.join(tmpdir(), `sluice-${options.flavor}-`));
    const place = { folder, port: await findFreePort(), unixSocket: path.join(folder, "socket") };
    const server = new ServerProcess(options, place, await options.argsFor(place));
    try {
      await server.restart();
      return server;
    } catch (error) {
      await server.close();
      if (attempt === startAttempts || !server.log.includes("Address already in use")) throw error;
    }
  }
}

class ServerProcess implements TestServer {
  readonly flavor: Flavor;
  readonly host = loopback;
  readonly port: number;
  readonly url: string;
  readonly unixSocket: string;
  readonly folder: string;
  /** The end of its output. */
  log = "";
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;
  #watchman: ChildProcess | undefined;
  #connection: RespConnection | undefined;
  #state: ServerState = "stopped";

  constructor({ flavor, tls }: ProcessOptions, place: ServerPlace, args: readonly string[]) {
    this.flavor = flavor;
    this.port = place.port;
    this.url = `${tls ? "rediss" : "redis"}://${loopback}:${place.port}`;
    this.unixSocket = place.unixSocket;
    this.folder = place.folder;
    this.#args = args;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get state(): ServerState {
    return this.#state;
  }

  command(...args: readonly Argument[]): Promise<unknown> {
    if (this.#state === "stopped") {
      return Promise.reject(new Error(`${this.#name} is stopped and cannot run ${args[0]}; restart it first.`));
    }
    if (this.#connection === undefined || this.#connection.closed) {
      this.#connection = new RespConnection(this.unixSocket);
    }
    return this.#connection.send(args);
  }

  pause(): void {
    if (this.#state !== "running") return;
    this.#child?.kill("SIGSTOP");
    this.#state = "paused";
  }

  resume(): void {
    if (this.#state !== "paused") return;
    this.#child?.kill("SIGCONT");
    this.#state = "running";
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && !hasEnded(child)) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
  }

  async restart(): Promise<void> {
    await this.kill();
    this.#watchman?.kill("SIGKILL");
    this.log = "";
    const child = spawn(`${this.flavor}-server`, this.#args, {
      env: { ...process.env, PATH: `${process.env.PATH ?? ""}${path.delimiter}/usr/bin` },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => this.#note(String(chunk)));
    child.once("error", (error) => this.#note(`${this.flavor}-server does not start: ${error.message}`));
    child.once("exit", () => {
      this.#watchman?.stdin?.write("ended\n");
      this.#connection?.close();
      this.#state = "stopped";
    });
    if (child.pid !== undefined) this.#watchman = watchOver(child.pid, this.folder);
    this.#state = "running";
    try {
      await waitUntil(`${this.#name} answers`, startWithinMs, async () =>
        hasEnded(child) || (await this.#answers()) ? true : undefined,
      );
    } catch (error) {
      throw new Error(this.#startFailure(), { cause: error });
    }
    if (hasEnded(child)) {
      this.#state = "stopped";
      throw new Error(this.#startFailure());
    }
  }

  async close(): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
    this.#watchman?.kill("SIGKILL");
  }

  async #answers(): Promise<boolean> {
    try {
      return (await this.command("PING")) === "PONG";
    } catch (error) {
      // One that wants a password first does answer.
      if (error instanceof ReplyError && error.message.startsWith("NOAUTH")) return true;
      throw error;
    }
  }

  #startFailure(): string {
    return `${this.#name} did not start. Its log ends with:\n${this.log.trim()}`;
  }

  get #name(): string {
    return `${this.flavor}-server on ${loopback}:${this.port}`;
  }

  #note(text: string): void {
    this.log = (this.log + text).slice(-maxLogChars);
  }
}

export function hasEnded(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}

/**
 * A shell that waits for this process to end, in whatever way, and then ends the server, unless it was told that it has
 * ended already, and removes its folder. It reads from a pipe that the system closes when this process ends; interrupts
 * from a terminal do not reach it.
 */
export function watchOver(pid: number, folder: string): ChildProcess {
  const script = 'read -r _ || kill -9 "$1"; read -r _; rm -rf "$2"';
  const args = ["-c", script, "sh", String(pid), folder];
  const watchman = spawn("sh", args, { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  watchman.stdin.on("error", () => undefined);
  return watchman;
}
