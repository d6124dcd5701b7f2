import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const number = expect.any(Number);

it("npm run bench -- apps measures everything, and prints it last as one JSON object", {
  timeout: 300_000,
}, async () => {
  const file = path.join(import.meta.dirname, "apps.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["-C", "source", file, "--quick", "--json"]);
  const { suite, cpu_us_per_request, ...result } = JSON.parse(stdout.trimEnd().split("\n").at(-1)!);
  expect(suite).toBe("apps");
  expect(Object.keys(cpu_us_per_request)).toHaveLength(8);
  // The overhead that a quick run finds may be any number, even a negative one.
  expect(result).toEqual({
    added_us_per_request: {
      express: number,
      express_rate_limit: number,
      fastify: number,
      fastify_rate_limit: number,
      express_redis: number,
      rate_limit_redis: number,
    },
    ratio: {
      express_overhead_vs_express_rate_limit: number,
      fastify_overhead_vs_fastify_rate_limit: number,
      express_redis_overhead_vs_rate_limit_redis: number,
    },
  });
});
