import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const read = (name: string) => readFileSync(path.join(dist, name), "utf8");
const page = read("index.html");

/** What a browser loads before it shows anything: the page's scripts, and what they import without `import()`. */
function findInitialScripts(): readonly string[] {
  const found = new Set([...page.matchAll(/(?:src|href)="\/([^"]+\.js)"/g)].map(([, name = ""]) => name));
  for (const name of found) {
    for (const [, other = ""] of read(name).matchAll(
      /\bfrom\s*["']\.\/([^"']+\.js)["']|\bimport\s*["']\.\/([^"']+\.js)["']/g,
    ))
      if (other !== "") found.add(path.posix.join(path.posix.dirname(name), other));
  }
  return [...found];
}

describe("the built console", () => {
  const initial = findInitialScripts();

  it("loads at most 250 KB of compressed JavaScript before it shows anything", () => {
    expect(initial.length).toBeGreaterThan(2);
    const bytes = initial.reduce((sum, name) => sum + gzipSync(read(name)).length, 0);
    expect(bytes).toBeLessThan(250 * 1024);
  });

  it("loads the editor, the charts and YAML only where they are shown", () => {
    const chunks = readdirSync(path.join(dist, "assets")).filter((name) => name.endsWith(".js"));
    const holding = (text: string) => chunks.filter((name) => read(`assets/${name}`).includes(text));
    for (const text of ["cm-content", "u-over", "Document with errors cannot be stringified"]) {
      expect(holding(text), text).not.toEqual([]);
      expect(
        initial.filter((name) => holding(text).includes(path.posix.basename(name))),
        text,
      ).toEqual([]);
    }
  });

  it("has no inline script or style, and nothing from another host", () => {
    expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/);
    expect([...page.matchAll(/(?:src|href)="([^"]*)"/g)].filter(([, url = ""]) => !/^\/(?!\/)/.test(url))).toEqual([]);
    const sheets = readdirSync(path.join(dist, "assets")).filter((name) => name.endsWith(".css"));
    for (const sheet of sheets) expect(read(`assets/${sheet}`)).not.toMatch(/url\(|@import/);
  });
});
