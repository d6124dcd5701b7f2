import { writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";

export interface Bundle {
  /** Every file that something of is left, from node_modules. */
  readonly files: readonly string[];
  /** Its external imports. */
  readonly imports: readonly string[];
  /** The code loaded at the start, minified and compressed, without code that an `import()` loads later. */
  readonly gzipBytes: number;
}

/** Bundles a module as an application's build does. Packages in `external` stay outside, as Node's own modules do. */
export async function bundle(folder: string, code: string, external: readonly string[] = []): Promise<Bundle> {
  const input = path.join(folder, `entry-${entries++}.mjs`);
  writeFileSync(input, code);
  const build = await rolldown({
    input,
    platform: "node",
    external: external.map((name) => new RegExp(`^${name}(/|$)`)),
    onLog: (_level, { code: kind = "", message }) => {
      if (kind === "UNRESOLVED_IMPORT") throw new Error(message);
    },
  });
  try {
    const { output } = await build.generate({ format: "esm", minify: true });
    const chunks = output.filter((one) => one.type === "chunk");
    const files = chunks.flatMap(({ modules }) =>
      Object.entries(modules).flatMap(([file, { renderedLength }]) => (renderedLength > 0 ? [file] : [])),
    );
    const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
    const first = new Set(chunks.filter(({ isEntry }) => isEntry));
    for (const chunk of first) for (const name of chunk.imports) if (byName.has(name)) first.add(byName.get(name)!);
    const text = [...first].map((chunk) => chunk.code).join("\n");
    const marker = `${path.sep}node_modules${path.sep}`;
    return {
      imports: chunks.flatMap((chunk) => chunk.imports).filter((name) => !byName.has(name)),
      files: files
        .filter((file) => file.includes(marker))
        .map((file) => file.slice(file.indexOf(marker) + marker.length)),
      gzipBytes: gzipSync(text).length,
    };
  } finally {
    await build.close();
  }
}

let entries = 0;
