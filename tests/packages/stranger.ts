import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { npmEnvironment } from "../../scripts/pack-packages.mjs";
import { repositoryRoot } from "../repository/source-tree.ts";

/** A program that has not ended by then will not end: on a quiet machine each takes about a second. */
const programMs = 30_000;
const installMs = 240_000;
const installFlags = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error"];

/** A user's project that knows nothing of this repository: an empty folder outside it. */
export class Stranger {
  readonly folder: string;

  constructor() {
    this.folder = mkdtempSync(path.join(tmpdir(), "sluice-stranger-"));
    this.write("package.json", JSON.stringify({ name: "stranger", private: true, type: "module" }));
  }

  write(file: string, text: string): void {
    writeFileSync(path.join(this.folder, file), text);
  }

  /** Copies a program, or a folder with one, from `programs`. */
  copyProgram(name: string): void {
    cpSync(path.join(import.meta.dirname, "programs", name), path.join(this.folder, name), { recursive: true });
  }

  async install(env: NodeJS.ProcessEnv, what: readonly string[]): Promise<void> {
    await this.#run("npm", ["install", ...installFlags, ...what], npmEnvironment(env), installMs);
  }

  /** Runs a program under a Node, in a nearly empty environment. Resolves with its output. */
  run(node: string, args: readonly string[]): Promise<string> {
    return this.#run(node, args, createEnvironment(node));
  }

  /** Runs a command that a package brought along, with more in its environment. */
  runCommand(node: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
    const link = path.join(this.folder, "node_modules/.bin", command);
    return this.#run(link, args, { ...createEnvironment(node), ...env });
  }

  /** The names of all packages that are installed. */
  listPackages(): readonly string[] {
    return readdirSync(path.join(this.folder, "node_modules"), { recursive: true, encoding: "utf8" })
      .filter((file) => /(^|\/node_modules\/)(@[^/]+\/)?[^/@]+\/package\.json$/.test(file))
      .map((file) => path.dirname(file));
  }

  /** Another project with the same files. */
  copy(): Stranger {
    const other = new Stranger();
    cpSync(this.folder, other.folder, { recursive: true, verbatimSymlinks: true });
    return other;
  }

  /** Links packages that are installed in the repository, as `folder` there finds them, with their types. */
  link(folder: string, names: readonly string[]): void {
    const typesPackage = (name: string): string => `@types/${name.replace(/^@/, "").replace("/", "__")}`;
    const found = (name: string): string | undefined =>
      [folder, ""]
        .map((place) => path.join(repositoryRoot, place, "node_modules", name))
        .find((one) => existsSync(one));
    for (const name of [...names, ...names.map(typesPackage).filter((one) => found(one) !== undefined)]) {
      const target = path.join(this.folder, "node_modules", name);
      const installed = found(name);
      if (installed === undefined)
        throw new Error(`${folder}/package.json names ${name} among its peers, but it is not installed`);
      if (existsSync(target)) continue;
      mkdirSync(path.dirname(target), { recursive: true });
      symlinkSync(installed, target);
    }
  }

  /** Where copies of a package lie, from the project's folder. */
  findCopies(name: string): readonly string[] {
    return readdirSync(path.join(this.folder, "node_modules"), { recursive: true, encoding: "utf8" })
      .filter((file) => `/${file}`.endsWith(`/${name}/package.json`))
      .map((file) => path.dirname(file));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #run(tool: string, args: readonly string[], env: NodeJS.ProcessEnv, timeout = programMs): Promise<string> {
    try {
      const options = { cwd: this.folder, env, timeout, maxBuffer: 64 * 1024 * 1024 };
      return (await promisify(execFile)(tool, args, options)).stdout;
    } catch (error) {
      const { stdout = "", stderr = "", killed } = error as { stdout?: string; stderr?: string; killed?: boolean };
      const how = killed === true ? "does not end" : "failed";
      throw new Error(`${tool} ${args.join(" ")} ${how}:\n${stdout}${stderr}`, { cause: error });
    }
  }
}

function createEnvironment(node: string): NodeJS.ProcessEnv {
  return { PATH: path.dirname(node), NODE_ENV: "production" };
}
