import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { isatty } from "node:tty";
import { exitCodeFromSignal, repositoryRoot } from "./ensure-installed.mjs";

/** The first Node 22 that runs TypeScript without a flag. */
const oldestNode22Minor = 18;

/**
 * Where to find a Node that runs TypeScript: the one installed with the dependencies, else the one running this.
 *
 * @param {string} [root]
 * @param {{ execPath: string, version: string }} [running]
 * @returns {string | undefined}
 */
export function findNode(
  root = repositoryRoot,
  running = { execPath: process.execPath, version: process.versions.node },
) {
  const pinned = path.join(root, "node_modules", `node-${process.platform}-${process.arch}`, "bin", "node");
  // It is run, because a Node built for another C library exists but does not start.
  if (existsSync(pinned) && spawnSync(pinned, ["--version"]).status === 0) return pinned;
  return runsTypeScript(running.version) ? running.execPath : undefined;
}

/** @param {string} version */
export function runsTypeScript(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= oldestNode22Minor);
}

/** What to do if there is no Node that runs TypeScript. */
export function noNodeAdvice() {
  return (
    `Sluice runs on Node 24, or on 22.${oldestNode22Minor} and later. This is Node ${process.versions.node}, and no Node 24 ` +
    `for ${process.platform}-${process.arch} came with the dependencies. Install Node 24 and run this again.\n`
  );
}

/** Like `findNode`, but if there is none it says what to do and ends the process. */
export function findNodeOrExit() {
  const node = findNode();
  if (node !== undefined) return node;
  process.stderr.write(noNodeAdvice());
  process.exit(1);
}

/**
 * The environment in which `node`, and every tool that finds it on the PATH, is the given one.
 *
 * @param {string} node
 * @returns {NodeJS.ProcessEnv}
 */
export function environmentFor(node) {
  const folders = [path.dirname(node), path.join(repositoryRoot, "node_modules", ".bin"), process.env.PATH ?? ""];
  return { ...process.env, PATH: folders.join(path.delimiter) };
}

/**
 * Runs TypeScript from source in this terminal, passes signals on, and exits as it exits.
 *
 * @param {string} node
 * @param {readonly string[]} args
 * @param {{ cwd?: string | undefined }} [options] the folder to run in; default: the current one
 */
export function runInPlace(node, args, { cwd } = {}) {
  const child = spawn(node, ["-C", "source", ...args], { stdio: "inherit", env: environmentFor(node), cwd });
  const inTerminal = isatty(0) || isatty(1);
  /** @type {readonly NodeJS.Signals[]} */
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) {
    process.on(signal, () => {
      const handedOn = signalToHandOn(signal, inTerminal);
      if (handedOn !== undefined) child.kill(handedOn);
    });
  }
  child.once("error", (error) => {
    process.stderr.write(`${node} could not be started: ${error.message}\n`);
    process.exit(1);
  });
  child.once("exit", (code, signal) => process.exit(code ?? exitCodeFromSignal(signal)));
}

/**
 * @param {NodeJS.Signals} signal
 * @param {boolean} inTerminal
 * @returns {NodeJS.Signals | undefined}
 */
export function signalToHandOn(signal, inTerminal) {
  if (!inTerminal) return signal;
  // A terminal sends Ctrl-C to the child as well; passed on, it would arrive twice and mean "at once".
  if (signal === "SIGINT") return undefined;
  // The terminal is gone, so the child must end. Without a terminal SIGHUP means reload.
  return signal === "SIGHUP" ? "SIGTERM" : signal;
}
