import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { logEvents } from "./log-events.ts";

const source = fileURLToPath(new URL("../..", import.meta.url));
const page = await readFile(new URL("../../../../../docs/operations.md", import.meta.url), "utf8");

/** Rows of the page: `| \`event\` | level | sentence |`. */
const rows = [...page.matchAll(/^\| `([a-z_]+\.[a-z_]+)` \| (\w+) \| (.+) \|$/gm)].map(
  ([, event, level, sentence]) => [event!, level!, sentence!] as const,
);

/** Every event that the server's code names, with the levels it is logged at. */
async function findLogged(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, Set<string>>();
  for (const file of await readdir(source, { recursive: true })) {
    if (!file.endsWith(".ts") || file.endsWith(".test.ts") || file.endsWith("log-events.ts")) continue;
    const text = await readFile(`${source}${file}`, "utf8");
    for (const event of Object.keys(logEvents)) {
      let at = text.indexOf(`"${event}"`);
      for (; at >= 0; at = text.indexOf(`"${event}"`, at + 1)) {
        const levels = found.get(event) ?? new Set();
        const [, level] = /.*\blog\.(\w+)\(/s.exec(text.slice(Math.max(0, at - 160), at)) ?? [];
        found.set(event, level === undefined ? levels : levels.add(level));
      }
    }
  }
  return found;
}

describe("log events", () => {
  it("are on the page for operators with their sentences, all of them and no other", () => {
    expect(Object.fromEntries(rows.map(([event, , sentence]) => [event, sentence]))).toEqual(logEvents);
  });

  it("are all logged, at the level that the page says", async () => {
    const logged = await findLogged();
    expect([...logged.keys()].sort()).toEqual(Object.keys(logEvents).sort());
    const wrong = rows.filter(([event, level]) => {
      const levels = logged.get(event)!;
      return levels.size > 0 && !levels.has(level);
    });
    expect(wrong).toEqual([]);
  });

  it("are named by what they are about and what happened", () => {
    for (const event of Object.keys(logEvents)) expect(event).toMatch(/^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$/);
  });
});
