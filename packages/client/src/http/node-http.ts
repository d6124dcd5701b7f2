import { createRequire } from "node:module";

type Http = typeof import("node:http");

/**
 * `node:http` as `require` gives it, when it is first needed. Who imports it by name also loads Node's `fetch`, which takes time and
 * memory and leaves globals behind.
 */
export function nodeHttp(): Http {
  // Nodes before 20.16 do not have the first, and bundles for CommonJS have no use for the second.
  return (process.getBuiltinModule?.("node:http") ?? createRequire(import.meta.url)("node:http")) as Http;
}
