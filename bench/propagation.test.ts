import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const measurements = { p50_ms: expect.any(Number), p99_ms: expect.any(Number), max_ms: expect.any(Number) };

it("npm run bench -- propagation measures every way, and prints it last as one JSON object", {
  timeout: 180_000,
}, async () => {
  const file = path.join(import.meta.dirname, "propagation.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["-C", "source", file, "--quick", "--json"]);
  expect(JSON.parse(stdout.trimEnd().split("\n").at(-1)!)).toEqual({
    ...{ suite: "propagation", nodes: 3, changes: 3 },
    ...{ listen_notify: measurements, pub_sub: measurements, looking_only: measurements },
  });
});
