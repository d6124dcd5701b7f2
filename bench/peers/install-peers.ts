import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import {
  describeRelease,
  type PeerName,
  type PeerProgram,
  peerNames,
  peerPrograms,
  type Release,
} from "./peer-programs.ts";

const run = promisify(execFile);

/** A peer on this machine. */
export interface InstalledPeer {
  readonly program: string;
  /** As `describeRelease` writes it. */
  readonly version: string;
}

export interface Installation {
  readonly installed: Partial<Record<PeerName, InstalledPeer>>;
  /** Why the others are not here, and what to do about it. */
  readonly missing: Partial<Record<PeerName, string>>;
}

export interface InstallOptions {
  /** Everything is built, and stays, in this folder. */
  readonly folder: string;
  /** False: only what is there already counts. */
  readonly build: boolean;
  readonly env?: NodeJS.ProcessEnv;
  readonly progress: (line: string) => void;
}

/** The folder outside the repository where a user's programs cache things. */
export function peerFolder(env: NodeJS.ProcessEnv = process.env): string {
  return path.join(env.XDG_CACHE_HOME || path.join(homedir(), ".cache"), "sluice-bench-peers");
}

/** Builds peers from their registries, each once, as the machine's Go and Cargo are configured: both verify checksums. */
export async function installPeers(options: InstallOptions): Promise<Installation> {
  const installed: Partial<Record<PeerName, InstalledPeer>> = {};
  const missing: Partial<Record<PeerName, string>> = {};
  for (const name of peerNames) {
    const found = await installPeer(peerPrograms[name], options);
    if (typeof found === "string") missing[name] = found;
    else installed[name] = found;
  }
  return { installed, missing };
}

/** The program, or why there is none. */
async function installPeer({ title, releases }: PeerProgram, options: InstallOptions): Promise<InstalledPeer | string> {
  const reasons: string[] = [];
  const ready = releases.find((release) => existsSync(findProgram(release, options)));
  if (ready !== undefined) return { program: findProgram(ready, options), version: describeRelease(ready) };
  if (!options.build) return `${title} has not been built yet; run npm run bench -- peers without --no-install`;
  for (const release of releases) {
    options.progress(`building ${describeRelease(release)}, once; this takes minutes`);
    try {
      await build(release, options);
      return { program: findProgram(release, options), version: describeRelease(release) };
    } catch (error) {
      reasons.push((error as Error).message);
    }
  }
  return reasons.join("; ");
}

function findProgram(release: Release, { folder }: InstallOptions): string {
  return path.join(folder, "bin", describeRelease(release).replaceAll(/[^\w.-]+/g, "-"));
}

async function build(release: Release, options: InstallOptions): Promise<void> {
  const place = path.join(options.folder, "build");
  await rm(place, { recursive: true, force: true });
  await mkdir(place, { recursive: true });
  await mkdir(path.dirname(findProgram(release, options)), { recursive: true });
  const built =
    release.kind === "go" ? await buildGo(release, place, options) : await buildCrate(release, place, options);
  // In one step, so that a build that was interrupted leaves no half of a program.
  await rename(built, findProgram(release, options));
  await rm(place, { recursive: true, force: true });
}

/**
 * As a dependency of an empty module, which verifies it and all it needs against Go's checksum database. `go install`
 * does the same, but also wants a list of all versions, which not every proxy has.
 */
async function buildGo(
  { module, version, main }: Extract<Release, { kind: "go" }>,
  place: string,
  { folder, env = process.env }: InstallOptions,
): Promise<string> {
  const goEnv = {
    ...env,
    GOFLAGS: [env.GOFLAGS, "-modcacherw", "-p=1"].filter(Boolean).join(" "),
    GOPATH: path.join(folder, "go"),
    GOCACHE: path.join(folder, "go-build"),
  };
  const program = path.join(place, "program");
  await runTool("go", ["mod", "init", "peer"], place, goEnv);
  await runTool("go", ["mod", "edit", `-require=${module}@${version}`], place, goEnv);
  if ("file" in main) {
    const text = await readFile(path.join(import.meta.dirname, main.file), "utf8");
    // Every release of a module has the same API, whatever the module was called then.
    await writeFile(path.join(place, "main.go"), text.replace(/"github\.com\/[^"]+"/, `"${module}"`));
  }
  const built = "file" in main ? "." : `${module}/${main.package}`;
  await runTool("go", ["build", "-mod=mod", "-o", program, built], place, goEnv);
  return program;
}

async function buildCrate(
  { crate, version }: Extract<Release, { kind: "cargo" }>,
  place: string,
  options: InstallOptions,
): Promise<string> {
  const { folder, env = process.env } = options;
  await runTool(
    "cargo",
    ["install", crate, "--version", `=${version}`, "--locked", "--jobs=1", `--root=${place}`],
    place,
    {
      ...env,
      CARGO_TARGET_DIR: path.join(folder, "cargo"),
      PROTOC: await findProtoc(options),
    },
  );
  return path.join(place, "bin", crate);
}

/** The machine's protoc, or the one in PyPI's grpcio-tools. */
async function findProtoc({ folder, env = process.env }: InstallOptions): Promise<string> {
  if (env.PROTOC) return env.PROTOC;
  if (await answers("protoc", env)) return "protoc";
  const libraries = path.join(folder, "python");
  const script = path.join(folder, "protoc");
  if (!existsSync(script)) {
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];
    await runTool("python3", [...pip, `--target=${libraries}`, "grpcio-tools==1.80.0"], folder, env);
    await writeFile(script, `#!/bin/sh\nPYTHONPATH='${libraries}' exec python3 -m grpc_tools.protoc "$@"\n`);
    await chmod(script, 0o755);
  }
  return script;
}

async function answers(tool: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  return run(tool, [tool === "go" ? "version" : "--version"], { env }).then(
    () => true,
    () => false,
  );
}

/** With low priority and one job, because people use this machine too. */
async function runTool(tool: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  if (!(await answers(tool, env))) throw new Error(`${tool} is not installed`);
  try {
    await run("nice", ["-n", "10", tool, ...args], { cwd, env, maxBuffer: 64 * 1024 * 1024 });
  } catch (error) {
    const { stderr = "", message } = error as { stderr?: string; message: string };
    const said = (stderr || message).trim().split("\n").slice(-3).join(" ");
    throw new Error(`\`${tool} ${args.join(" ")}\` failed: ${said}`);
  }
}
