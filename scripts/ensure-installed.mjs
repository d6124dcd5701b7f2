import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { constants, hostname } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const repositoryRoot = fileURLToPath(new URL("..", import.meta.url));

const heartbeatMs = 1_000;
/** A holder that gave no sign of life for this long is gone, even if its process id seems to exist. */
const silenceMs = 60_000;
const pollMs = 200;

/** npm could not install. `exitCode` is npm's own. */
export class InstallError extends Error {
  /**
   * @param {string} message
   * @param {number} exitCode
   */
  constructor(message, exitCode) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * How much to install. Serving needs a fifth: not the frameworks, the other Node versions and the test tools.
 *
 * @typedef {"everything" | "serving"} Extent
 */

/**
 * Installs the packages in package-lock.json, unless that was done for this very lock file before. Concurrent starts wait
 * for one another, and only the first installs.
 *
 * @param {string} [root]
 * @param {Extent} [extent]
 * @returns {Promise<{ installed: boolean }>}
 */
export async function ensureInstalled(root = repositoryRoot, extent = "everything") {
  try {
    return await installUnlessDone(root, extent);
  } catch (error) {
    if (error instanceof InstallError) throw error;
    throw new InstallError(`Dependencies could not be installed: ${error instanceof Error ? error.message : error}`, 1);
  }
}

/**
 * @param {string} root
 * @param {Extent} extent
 * @returns {Promise<{ installed: boolean }>}
 */
async function installUnlessDone(root, extent) {
  const digest = createHash("sha256")
    .update(readFileSync(path.join(root, "package-lock.json")))
    .digest("hex");
  const isDone = () => {
    const stamp = readStamp(root);
    return stamp === digest || (extent === "serving" && stamp === `${digest} serving`);
  };
  if (isDone()) return { installed: false };

  const lock = await takeLock(path.join(root, ".sluice", "install.lock"));
  try {
    if (isDone()) return { installed: false };
    process.stderr.write("Installing dependencies…\n");
    rmSync(stampPath(root), { force: true });
    await runNpmInstall(root, extent, lock.alsoHeldBy);
    writeFileSync(stampPath(root), extent === "serving" ? `${digest} serving\n` : `${digest}\n`);
    return { installed: true };
  } finally {
    lock.release();
  }
}

/**
 * The first step of every script: installs, or says why that failed and exits with npm's exit code.
 *
 * @param {Extent} [extent]
 * @returns {Promise<{ installed: boolean }>}
 */
export async function ensureInstalledOrExit(extent) {
  try {
    return await ensureInstalled(repositoryRoot, extent);
  } catch (error) {
    if (!(error instanceof InstallError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(error.exitCode);
  }
}

/** @param {string} root */
function stampPath(root) {
  return path.join(root, "node_modules", ".sluice-installed");
}

/** @param {string} root */
function readStamp(root) {
  return readIfPresent(stampPath(root))?.trim();
}

/** @param {string} file */
function readIfPresent(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes(String(errorCode(error)))) return undefined;
    throw error;
  }
}

/** @param {unknown} error */
function errorCode(error) {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/**
 * @param {string} root
 * @param {Extent} extent
 * @param {(pid: number | undefined) => void} onSpawn
 * @returns {Promise<void>}
 */
async function runNpmInstall(root, extent, onSpawn) {
  // npm scripts have node_modules/.bin first on their PATH, and with it the Node that npm may be about to replace.
  const searchPath = (process.env.PATH ?? "")
    .split(path.delimiter)
    .filter((folder) => !folder.endsWith(path.join("node_modules", ".bin")) && !folder.includes("node-gyp-bin"))
    .join(path.delimiter);
  // Not `npm ci`: it refuses a lock file that lacks packages for other platforms, and registries may not have them all.
  // `--no-save` installs the locked versions, and leaves the lock file unchanged.
  const parts =
    extent === "serving"
      ? ["--omit=dev", "--include-workspace-root", "--workspace=packages/server", "--workspace=packages/cli"]
      : ["--include=dev"];
  const flags = ["--no-save", ...parts, "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"];
  /** @type {NodeJS.Signals | undefined} */
  let interruptedBy;
  const interrupt = (/** @type {NodeJS.Signals} */ signal) => {
    interruptedBy = signal;
    child.kill(signal);
  };
  // Before npm runs: an unhandled signal would end this script, and leave npm and the lock behind.
  for (const signal of interrupts) process.on(signal, interrupt);
  const child = spawn("npm", ["install", ...flags], {
    cwd: root,
    env: { ...process.env, PATH: searchPath },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onSpawn(child.pid);
  let output = "";
  const collect = (/** @type {Buffer} */ chunk) => {
    output += chunk;
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  try {
    const code = await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (status, signal) => resolve(status ?? exitCodeFromSignal(signal)));
    });
    if (interruptedBy !== undefined) {
      throw new InstallError("Interrupted while installing dependencies.", exitCodeFromSignal(interruptedBy));
    }
    if (code !== 0) {
      throw new InstallError(
        `${output.trim()}\n\nDependencies could not be installed: \`npm install\` in ${root} exited with ${code}; see above. ` +
          "It needs a registry that npm can reach and a folder that it can write to. Fix that and run this again.",
        code,
      );
    }
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    throw new InstallError(
      "Dependencies could not be installed: there is no npm on the PATH. Install npm 10 or later.",
      127,
    );
  } finally {
    for (const signal of interrupts) process.off(signal, interrupt);
  }
}

/** @type {readonly NodeJS.Signals[]} */
const interrupts = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * The exit code that shells use for a process that a signal ended.
 *
 * @param {NodeJS.Signals | null} signal
 */
export function exitCodeFromSignal(signal) {
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}

/**
 * A lock is a folder that contains its owner's file. It is created and removed by a rename, so it is never seen without its
 * owner; and the owner's file is touched every second, which distinguishes a lock in use from one that a crash left behind.
 *
 * @param {string} lockPath
 * @returns {Promise<{ alsoHeldBy(pid: number | undefined): void, release(): void }>}
 */
async function takeLock(lockPath) {
  mkdirSync(path.dirname(lockPath), { recursive: true });
  const ownerFile = path.join(lockPath, "owner");
  const owner = { pids: [process.pid], host: hostname(), id: randomUUID() };
  for (let waited = false; !placeLock(lockPath, JSON.stringify(owner)); waited = true) {
    if (removeIfStale(lockPath)) continue;
    if (!waited) process.stderr.write("Waiting for another process that is installing dependencies…\n");
    await pause(pollMs);
  }
  const heartbeat = setInterval(() => touch(ownerFile), heartbeatMs);
  heartbeat.unref();
  return {
    /** npm outlives a script that is killed, and holds the lock for as long as it runs. */
    alsoHeldBy(pid) {
      if (pid === undefined) return;
      owner.pids.push(pid);
      writeFileSync(`${ownerFile}.next`, JSON.stringify(owner));
      renameSync(`${ownerFile}.next`, ownerFile);
    },
    release() {
      clearInterval(heartbeat);
      if (readOwner(lockPath)?.id === owner.id) removeLock(lockPath);
    },
  };
}

/**
 * False if another process holds the lock.
 *
 * @param {string} lockPath
 * @param {string} owner
 */
function placeLock(lockPath, owner) {
  const draft = `${lockPath}.${randomUUID()}`;
  mkdirSync(draft);
  try {
    writeFileSync(path.join(draft, "owner"), owner);
    renameSync(draft, lockPath);
    return true;
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST"].includes(String(errorCode(error)))) throw error;
    return false;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** @param {string} lockPath */
function removeLock(lockPath) {
  const discarded = `${lockPath}.${randomUUID()}`;
  renameSync(lockPath, discarded);
  rmSync(discarded, { recursive: true, force: true });
}

/**
 * Removes the lock of a process that is gone. Two processes that find it stale at once take turns with `.break`: otherwise
 * the slower one would remove the lock that the faster one has just taken.
 *
 * @param {string} lockPath
 */
function removeIfStale(lockPath) {
  if (!isStale(lockPath)) return false;
  const turn = `${lockPath}.break`;
  try {
    mkdirSync(turn);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    if (ageMs(turn) > silenceMs) rmSync(turn, { recursive: true, force: true });
    return false;
  }
  try {
    if (isStale(lockPath)) removeLock(lockPath);
    return true;
  } finally {
    rmSync(turn, { recursive: true, force: true });
  }
}

/** @param {string} lockPath */
function isStale(lockPath) {
  const owner = readOwner(lockPath);
  if (owner === undefined) return false;
  if (ageMs(path.join(lockPath, "owner")) > silenceMs) return true;
  return owner.host === hostname() && !owner.pids.some(isRunning);
}

/**
 * Undefined if the lock was released meanwhile.
 *
 * @param {string} lockPath
 * @returns {{ pids: number[], host: string, id: string } | undefined}
 */
function readOwner(lockPath) {
  const text = readIfPresent(path.join(lockPath, "owner"));
  return text === undefined ? undefined : JSON.parse(text);
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // A process of another user cannot be signalled, but it exists.
    return errorCode(error) === "EPERM";
  }
  // If nothing reaps orphans, as in many containers, a process that ended keeps its id as a zombie.
  return !/^State:\s+[ZX]/m.test(readIfPresent(`/proc/${pid}/status`) ?? "");
}

/** @param {string} file */
function ageMs(file) {
  try {
    return Date.now() - statSync(file).mtimeMs;
  } catch {
    return 0;
  }
}

/** @param {string} file */
function touch(file) {
  const now = new Date();
  try {
    utimesSync(file, now, now);
  } catch {
    // The lock was considered stale and removed; the stamp still shows whether the installation is complete.
  }
}
