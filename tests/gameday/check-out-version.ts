import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The sources of a commit in a folder, with the dependencies that are installed here. */
export interface CheckedOut {
  readonly commit: string;
  /** The command's program, which runs from source. */
  readonly main: string;
  close(): Promise<void>;
}

/** Absent: the commit before the current one, or the current one if its history ends there. */
export async function checkOutVersion(from?: string): Promise<CheckedOut> {
  const commit = from === undefined ? (findCommit("HEAD^") ?? findCommit("HEAD")) : findCommit(from);
  if (commit === undefined) throw new Error(`there is no commit ${from ?? "HEAD"} in this clone`);
  const folder = await mkdtemp(join(tmpdir(), "sluice-version-"));
  const close = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    execFileSync("sh", ["-c", 'git archive --format=tar "$0" packages package.json | tar -x -C "$1"', commit, folder], {
      cwd: root,
    });
    linkModules("node_modules", folder);
    for (const name of readdirSync(join(folder, "packages")))
      linkModules(join("packages", name, "node_modules"), folder);
    return { commit: commit.slice(0, 10), main: join(folder, "packages", "cli", "src", "main.ts"), close };
  } catch (error) {
    await close();
    throw error;
  }
}

function findCommit(name: string): string | undefined {
  try {
    const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
    return execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

/** Links to workspaces are relative, so that the same link leads to the other version's package. */
function linkModules(path: string, folder: string): void {
  const names = lstatSync(join(root, path), { throwIfNoEntry: false })?.isDirectory()
    ? readdirSync(join(root, path))
    : [];
  if (names.length > 0) mkdirSync(join(folder, path), { recursive: true });
  for (const name of names.filter((one) => !one.startsWith("."))) {
    const inner = join(path, name);
    if (name.startsWith("@")) linkModules(inner, folder);
    else if (lstatSync(join(root, inner)).isSymbolicLink())
      symlinkSync(readlinkSync(join(root, inner)), join(folder, inner));
    else symlinkSync(join(root, inner), join(folder, inner));
  }
}
