import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import { repositoryRoot } from "../repository/source-tree.ts";
import type { Stranger } from "./stranger.ts";

interface CompileOptions {
  /** `commonjs`, `node16` and `node20`: what `module` is, and resolution follows from it. */
  readonly resolution: "nodenext" | "bundler" | "commonjs" | "node16" | "node20";
  readonly types: readonly string[];
  readonly files: readonly string[];
  /** Where JavaScript goes. Absent: nowhere. */
  readonly outDir?: string;
  /** Absent: the one that is pinned at the root. */
  readonly compiler?: "5.6";
}

/**
 * Compiles with everything strict, declarations of packages included, and gives the problems, one line each. Those in
 * declarations of packages that were linked from the repository are their makers' affair.
 */
export async function compile(project: Stranger, options: CompileOptions): Promise<readonly string[]> {
  const { resolution, types, files, outDir, compiler } = options;
  const modules = resolution === "bundler" ? { module: "esnext", moduleResolution: "bundler" } : { module: resolution };
  const compilerOptions = { ...modules, target: "es2022", strict: true, skipLibCheck: false, types };
  const emit = outDir === undefined ? { noEmit: true } : { outDir };
  const config = `tsconfig.${files[0]}.${resolution}.json`;
  project.write(config, JSON.stringify({ compilerOptions: { ...compilerOptions, ...emit }, files }));
  const tool = compiler === undefined ? pinned : older();
  const printed = await new Promise<string>((resolve, reject) => {
    execFile(
      process.execPath,
      [tool, "-p", config, "--pretty", "false"],
      { cwd: project.folder },
      (error, stdout, stderr) => {
        // 1 and 2 are for problems found.
        if (error !== null && ![1, 2].includes(Number(error.code))) reject(new Error(`${error.message}\n${stderr}`));
        else resolve(stdout);
      },
    );
  });
  return printed.split("\n").filter((line) => /error TS/.test(line) && !/^(\.\.|\/)/.test(line));
}

const pinned = path.join(repositoryRoot, "node_modules/typescript/bin/tsc");

/** The compiler that are-the-types-wrong brings along. */
function older(): string {
  const require = createRequire(createRequire(import.meta.url).resolve("@arethetypeswrong/core"));
  return require.resolve("typescript/bin/tsc");
}
