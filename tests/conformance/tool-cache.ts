import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Missing } from "./conformance-part.ts";

const run = promisify(execFile);

/** Everything that is installed or built goes here, and nothing anywhere else. Git ignores it. */
export const cacheFolder: string = fileURLToPath(new URL("../../.sluice/conformance/", import.meta.url));

export const binFolder: string = path.join(cacheFolder, "bin");

/** Go's modules and compiled packages stay in the cache; everything else is as the machine configures Go. */
const goEnvironment = {
  GOBIN: binFolder,
  GOPATH: path.join(cacheFolder, "go"),
  GOCACHE: path.join(cacheFolder, "go-build"),
};

/** Compilers run with the lowest priority and one job, because tests and people use this machine too. */
const nice = ["-n", "19"];

export function runGo(args: readonly string[], cwd?: string): Promise<void> {
  return runTool("go", args, {
    cwd,
    env: { ...process.env, GOFLAGS: withFlags("-modcacherw -p=1"), ...goEnvironment },
  });
}

export function runCargo(args: readonly string[], cwd: string): Promise<void> {
  const env = { ...process.env, CARGO_TARGET_DIR: path.join(cacheFolder, "cargo"), CARGO_BUILD_JOBS: "1" };
  return runTool("cargo", args, { cwd, env });
}

/** Its repository stays in the cache; where it downloads from is as the machine configures Maven. */
export async function runMaven(args: readonly string[]): Promise<void> {
  if ((await run("java", ["-version"]).catch(() => undefined)) === undefined)
    throw new Missing("java is not installed");
  const local = `-Dmaven.repo.local=${path.join(cacheFolder, "maven")}`;
  await runTool("mvn", ["--batch-mode", "--quiet", local, ...args], { env: process.env });
}

/** The Python that has pip; not Debian's own, which has grpcio and may lack it. */
export function runPip(args: readonly string[]): Promise<void> {
  const quiet = ["--disable-pip-version-check", "--no-input", "--quiet"];
  return runTool("python3", ["-m", "pip", ...args, ...quiet], {
    env: { ...process.env, PIP_CACHE_DIR: path.join(cacheFolder, "pip") },
  });
}

function withFlags(flags: string): string {
  return [process.env.GOFLAGS, flags].filter(Boolean).join(" ");
}

async function runTool(
  tool: string,
  args: readonly string[],
  options: { readonly cwd?: string | undefined; readonly env: NodeJS.ProcessEnv },
): Promise<void> {
  await mkdir(binFolder, { recursive: true });
  const version = await run(tool, [tool === "go" ? "version" : "--version"]).catch(() => undefined);
  if (version === undefined) throw new Missing(`${tool} is not installed`);
  try {
    await run("nice", [...nice, tool, ...args], { ...options, maxBuffer: 64 * 1024 * 1024 });
  } catch (error) {
    const { stderr = "", message } = error as { stderr?: string; message: string };
    const said = (stderr || message).trim().split("\n").slice(-8).join("\n");
    throw new Missing(`\`${tool} ${args.join(" ")}\` failed, so this part cannot be played:\n${said}`);
  }
}
