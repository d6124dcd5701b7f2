import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import {
  type Call,
  type ContractClient,
  type Fields,
  type Outcome,
  type Target,
  unable,
} from "../contract/contract-client.ts";

/** What a driver writes about one call: lines of JSON, in any order. */
interface DriverLine {
  readonly id: number;
  readonly code: number;
  readonly message: string;
  /** In base64. */
  readonly responses: readonly string[];
  readonly headers: Fields;
  readonly trailers: Fields;
}

/**
 * A client in another language: a program that reads calls as lines of JSON from stdin, makes them all at once, and writes
 * a line for each one that has ended. Calls to the same target share one connection.
 */
export async function openDriver(name: string, file: string, args: readonly string[]): Promise<ContractClient> {
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"] });
  const client = new DriverClient(name, child);
  await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject));
  return client;
}

class DriverClient implements ContractClient {
  readonly #name: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting = new Map<number, { resolve(outcome: Outcome): void; reject(error: Error): void }>();
  readonly #ended: Promise<void>;
  #errors = "";
  #lastId = 0;

  constructor(name: string, child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.#name = name;
    this.#child = child;
    child.stderr.on("data", (text) => {
      this.#errors = (this.#errors + text).slice(-4_000);
    });
    child.stdin.on("error", () => undefined);
    createInterface({ input: child.stdout }).on("line", (line) => this.#settle(JSON.parse(line)));
    this.#ended = new Promise((resolve) => {
      child.once("close", () => {
        const error = new Error(`The client ${name} has ended. It wrote:\n${this.#errors}`);
        for (const { reject } of this.#waiting.values()) reject(error);
        this.#waiting.clear();
        resolve();
      });
    });
  }

  call(target: Target, { requests, kind = "unary", ...call }: Call): Promise<Outcome> {
    this.#lastId += 1;
    const id = this.#lastId;
    const encoded = requests.map((request) => Buffer.from(request).toString("base64"));
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdin.write(`${JSON.stringify({ id, target, kind, requests: encoded, ...call })}\n`);
    });
  }

  callTogether(target: Target, call: Call, times: number): Promise<readonly Outcome[]> {
    return Promise.all(Array.from({ length: times }, () => this.call(target, call)));
  }

  send(): Promise<never> {
    return unable(this.#name, "raw requests");
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }

  #settle({ id, responses, ...rest }: DriverLine): void {
    const decoded = responses.map((response) => Buffer.from(response, "base64"));
    this.#waiting.get(id)?.resolve({ ...rest, responses: decoded });
    this.#waiting.delete(id);
  }
}
