import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { chmod, chown, copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { TestCertificates } from "./create-certificates.ts";
import { findFreePort, loopback } from "./find-free-port.ts";
import { hasEnded, watchOver } from "./server-process.ts";
import { waitUntil } from "./wait-until.ts";

const startWithinMs = 30_000;
const startAttempts = 5;
const maxLogChars = 4_000;
const debianFolder = "/usr/lib/postgresql";
const user = "sluice";
const password = "a-password-for-tests";

const run = promisify(execFile);

export interface PostgresOptions {
  /** More settings, such as `{ max_connections: "10" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Makes it speak TLS to those who ask for it. */
  readonly tls?: TestCertificates;
  /** Where its folder is made; absent: among temporary ones. */
  readonly parent?: string;
}

/** A real PostgreSQL on loopback, with a separate folder. It ends with the process that started it, however that ends. */
export interface TestPostgres {
  readonly port: number;
  /** `postgres://user:password@127.0.0.1:12345/postgres` */
  readonly url: string;
  readonly password: string;
  readonly folder: string;
  /** Another one after `start`. */
  readonly pid: number;
  /** The end of its output. */
  readonly log: string;
  /** A new database on it, and its URL. */
  createDatabase(): Promise<string>;
  /** Runs statements with psql, which is not ours, and returns its output. */
  psql(statements: string, url?: string): Promise<string>;
  /** Ends it: SIGINT cuts connections, SIGKILL is a crash. Committed data stays. */
  stop(signal?: "SIGINT" | "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  /** Ends it and removes its folder. */
  close(): Promise<void>;
}

/**
 * Starts a PostgreSQL with the collation en_US, so that queries that need another order must ask for it. It runs without
 * fsync: committed data survives its crash, but not the machine's.
 */
export async function startPostgres({
  settings = {},
  tls,
  parent = tmpdir(),
}: PostgresOptions = {}): Promise<TestPostgres> {
  for (let attempt = 1; ; attempt += 1) {
    const folder = await mkdtemp(path.join(parent, "sluice-postgres-"));
    const server = new PostgresProcess(folder, await findFreePort(), settings);
    try {
      await server.create(tls);
      await server.start();
      return server;
    } catch (error) {
      await server.close();
      if (attempt === startAttempts || !server.log.includes("Address already in use")) throw error;
    }
  }
}

class PostgresProcess implements TestPostgres {
  readonly port: number;
  readonly url: string;
  readonly password = password;
  log = "";
  readonly folder: string;
  readonly #data: string;
  readonly #settings: Record<string, string>;
  readonly #owner = findOwner();
  #child: ChildProcess | undefined;
  #watchman: ChildProcess | undefined;
  #databases = 0;

  constructor(folder: string, port: number, settings: Readonly<Record<string, string>>) {
    this.port = port;
    this.url = `postgres://${user}:${password}@${loopback}:${port}/postgres`;
    this.folder = folder;
    this.#data = path.join(folder, "data");
    this.#settings = {
      listen_addresses: loopback,
      port: String(port),
      unix_socket_directories: "",
      fsync: "off",
      full_page_writes: "off",
      max_connections: "60",
      shared_buffers: "16MB",
      log_min_messages: "fatal",
      ...settings,
    };
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async create(tls: TestCertificates | undefined): Promise<void> {
    const passwordFile = path.join(this.folder, "password");
    await writeFile(passwordFile, password, { mode: 0o600 });
    for (const each of [this.folder, passwordFile]) await this.#give(each);
    await run(
      program("initdb"),
      [
        ...["-D", this.#data, "-U", user, "--auth=scram-sha-256", `--pwfile=${passwordFile}`, "--encoding=UTF8"],
        ...["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US", "--no-sync", "--no-instructions"],
      ],
      { cwd: this.folder, ...this.#owner },
    );
    if (tls === undefined) return;
    const [cert, key] = [path.join(this.folder, "server.crt"), path.join(this.folder, "server.key")];
    await copyFile(tls.cert, cert);
    await copyFile(tls.key, key);
    await chmod(key, 0o600);
    for (const each of [cert, key]) await this.#give(each);
    Object.assign(this.#settings, { ssl: "on", ssl_cert_file: cert, ssl_key_file: key });
  }

  async start(): Promise<void> {
    if (this.#child !== undefined && !hasEnded(this.#child)) return;
    // What a crash leaves behind of the one before, its children and their shared memory, is gone in a moment.
    const started = await waitUntil(`PostgreSQL on port ${this.port} starts`, startWithinMs, async () => {
      if (await this.#startOnce()) return true;
      return /pre-existing shared memory|is another postmaster/i.test(this.log) ? undefined : false;
    });
    if (!started) throw new Error(`PostgreSQL did not start. Its log ends with:\n${this.log.trim()}`);
  }

  async #startOnce(): Promise<boolean> {
    this.#watchman?.kill("SIGKILL");
    this.log = "";
    const settings = Object.entries(this.#settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(program("postgres"), ["-D", this.#data, ...settings], {
      cwd: this.folder,
      env: { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8" },
      stdio: ["ignore", "pipe", "pipe"],
      ...this.#owner,
    });
    this.#child = child;
    const note = (text: string): void => {
      this.log = (this.log + text).slice(-maxLogChars);
    };
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => note(String(chunk)));
    child.once("error", (error) => note(`postgres does not start: ${error.message}`));
    if (child.pid !== undefined) {
      const watchman = watchOver(child.pid, this.folder);
      this.#watchman = watchman;
      child.once("exit", () => watchman.stdin?.write("ended\n"));
    }
    await waitUntil(`PostgreSQL on port ${this.port} answers`, startWithinMs, async () =>
      hasEnded(child) || (await this.#answers()) ? true : undefined,
    );
    return !hasEnded(child);
  }

  async #answers(): Promise<boolean> {
    try {
      await run(program("pg_isready"), ["--quiet", "-h", loopback, "-p", String(this.port)]);
      return true;
    } catch {
      return false;
    }
  }

  async createDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `test_${this.#databases}`;
    await this.psql(`create database ${name}`);
    return this.url.replace(/\/postgres$/, `/${name}`);
  }

  async psql(statements: string, url: string = this.url): Promise<string> {
    const args = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-v", "ON_ERROR_STOP=1"];
    const { stdout } = await run(program("psql"), [...args, "-c", statements, url]);
    return stdout.trim();
  }

  async stop(signal: "SIGINT" | "SIGTERM" | "SIGKILL" = "SIGINT"): Promise<void> {
    const child = this.#child;
    if (child === undefined || hasEnded(child)) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  async close(): Promise<void> {
    await this.stop("SIGKILL");
    // Its children end when they notice, and may still write until then.
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    this.#watchman?.kill("SIGKILL");
  }

  async #give(file: string): Promise<void> {
    if (this.#owner.uid !== undefined && this.#owner.gid !== undefined)
      await chown(file, this.#owner.uid, this.#owner.gid);
  }
}

/** Debian keeps programs of PostgreSQL by version, the newest of which is meant, and out of PATH. */
function program(name: string): string {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder) : [];
  const files = versions
    .toSorted((one, other) => Number(other) - Number(one))
    .map((version) => path.join(debianFolder, version, "bin", name));
  return files.find((file) => existsSync(file)) ?? name;
}

/** PostgreSQL refuses to run as root; any other user runs it as themselves. */
function findOwner(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag: string): number =>
        Number(execFileSync("id", [flag, name], { stdio: ["ignore", "pipe", "ignore"] }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // No such user.
    }
  }
  throw new Error(
    "PostgreSQL does not run as root, and there is no user `postgres` or `nobody` to run it as; create one.",
  );
}
