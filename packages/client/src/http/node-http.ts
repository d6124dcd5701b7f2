import { createRequire } from "node:module";

type Http = typeof import("node:http");

/**
 * `node:http` as `require` returns it, on first use. Importing it by name also loads Node's `fetch`, which takes time
 * and memory and leaves globals behind.
 */
export function nodeHttp(): Http {
  // Node before 20.16 lacks the first, and CommonJS bundles cannot use the second.
  return (process.getBuiltinModule?.("node:http") ?? createRequire(import.meta.url)("node:http")) as Http;
}
