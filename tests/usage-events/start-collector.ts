import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("collector.ts", import.meta.url));

/** An event as it arrived, with what its batch said. */
export interface Received {
  readonly authorization?: string;
  readonly type?: string;
  readonly batch: number;
  readonly event: { readonly id: string; readonly subject?: string; readonly data: Readonly<Record<string, unknown>> };
}

/** A collector of CloudEvents in a process that may be killed and started again, on the same port. */
export class Collector {
  readonly url: string;
  readonly #port: number;
  readonly #file: string;
  #child: ChildProcess | undefined;

  private constructor(port: number, file: string) {
    this.#port = port;
    this.#file = file;
    this.url = `http://127.0.0.1:${port}/api/v1/events`;
  }

  /** Not started yet. */
  static async create(file: string): Promise<Collector> {
    // Below the ports that Linux gives to outgoing connections, so that nothing takes it while the collector is down.
    for (;;) {
      const port = 24_000 + randomInt(8_000);
      if (await isFree(port)) return new Collector(port, file);
    }
  }

  async start(): Promise<void> {
    const args = [program, String(this.#port), this.#file];
    this.#child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    await once(this.#child.stdout!, "data");
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  async received(): Promise<readonly Received[]> {
    const text = await readFile(this.#file, "utf8").catch(() => "");
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Received]));
  }

  async ids(): Promise<ReadonlySet<string>> {
    return new Set((await this.received()).map(({ event }) => event.id));
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
