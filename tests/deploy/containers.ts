import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "../repository/source-tree.ts";

const runProgram = promisify(execFile);

/** Podman with images and containers in a folder of their own, which leaves the machine's alone. */
export interface Containers {
  readonly folder: string;
  /** Runs podman; resolves with its output. */
  podman(...args: readonly string[]): Promise<string>;
  /** Builds the image of this tree under that name. */
  build(tag: string, ...args: readonly string[]): Promise<void>;
  /** Removes every container and the folder. */
  close(): Promise<void>;
}

/** What a hardened deployment gives a container: hardly anything. */
export const hardened: readonly string[] = [
  ...["--read-only", "--cap-drop=ALL", "--security-opt", "no-new-privileges", "--network", "host"],
  ...["--ulimit", "nofile=1024:20000", "--ulimit", "nproc=1024:1024"],
];

export async function createContainers(): Promise<Containers> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-containers-"));
  const config = path.join(folder, "containers.conf");
  // Without cgroups of systemd, and with limits that a process without privileges may have.
  await writeFile(
    config,
    '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]\n' +
      '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n',
  );
  const place = ["--root", path.join(folder, "root"), "--runroot", path.join(folder, "run")];
  const env = { ...process.env, CONTAINERS_CONF: config, TMPDIR: folder };
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    // Elsewhere podman takes folders for images to build.
    const options = { env, cwd: folder, maxBuffer: 64 * 1024 * 1024 };
    return (await runProgram(program, args, options)).stdout;
  };
  const podman = (...args: readonly string[]): Promise<string> => run("podman", [...place, ...args]);
  return {
    folder,
    podman,
    async build(tag, ...args): Promise<void> {
      const script = path.join(repositoryRoot, "scripts/image.mjs");
      await run(process.execPath, [script, "--storage", folder, "--tag", tag, ...args]);
    },
    async close(): Promise<void> {
      await podman("rm", "--all", "--force", "--time", "0").catch(() => undefined);
      await podman("pod", "rm", "--all", "--force", "--time", "0").catch(() => undefined);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
