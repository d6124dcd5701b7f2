import { readFileSync } from "node:fs";

/** The package's own version. The manifest stands beside `src` and beside `dist` alike. */
export const version: string = (
  JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }
).version;
