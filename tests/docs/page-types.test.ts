import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { readSourceTree, repositoryRoot } from "../repository/source-tree.ts";

// Within the repository, so that imports are found; ignored by git.
const folder = path.join(repositoryRoot, "node_modules", ".cache", `page-types-${process.pid}`);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Every TypeScript block of a page, with the line it begins in. */
function findBlocks(page: string): readonly { readonly code: string; readonly line: number }[] {
  return [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(({ 1: code = "", index }) => ({
    code,
    line: page.slice(0, index).split("\n").length + 1,
  }));
}

/** The compiler's messages, file by file; empty if there are none. */
function compile(files: ReadonlyMap<string, string>): string {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // Each block is a separate module, even if it imports nothing.
  for (const [name, code] of files) writeFileSync(path.join(folder, name), `${code}\nexport {};\n`);
  const base = path.relative(folder, path.join(repositoryRoot, "tsconfig.base.json"));
  const options = {
    noEmit: true,
    composite: false,
    isolatedDeclarations: false,
    declaration: false,
    declarationMap: false,
    sourceMap: false,
    types: ["node"],
    lib: ["es2023", "dom", "dom.iterable"],
  };
  writeFileSync(
    path.join(folder, "tsconfig.json"),
    JSON.stringify({ extends: `./${base}`, compilerOptions: options, include: ["*.ts"] }),
  );
  const tsc = path.join(repositoryRoot, "node_modules", "typescript", "bin", "tsc");
  try {
    return execFileSync(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { encoding: "utf8", cwd: folder });
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout ?? error);
  }
}

it("every example in TypeScript on a page compiles as strictly as our own code", { timeout: 120_000 }, () => {
  const files = new Map<string, string>();
  for (const [file, text] of readSourceTree()) {
    if (!/^(README\.md|docs\/[^/]+\.md|packages\/[^/]+\/(README|AGENTS)\.md)$/.test(file)) continue;
    for (const { code, line } of findBlocks(text)) files.set(`${file.replace(/[/.]/g, "-")}-${line}.ts`, code);
  }
  expect(files.size).toBeGreaterThan(25);
  expect(compile(files)).toBe("");
});

it("an example that does not compile is noticed", { timeout: 120_000 }, () => {
  const code = 'import { limit } from "sluice";\nlimit("1/s").by("user").checkSync({ tenant: "acme" });\n';
  expect(compile(new Map([["bad.ts", code]]))).toMatch(/bad\.ts\(2,\d+\): error TS/);
});
