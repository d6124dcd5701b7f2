import { expect, it } from "vitest";
import { runQuickly } from "./measure/run-quickly.ts";

const number = expect.any(Number);

it("npm run bench -- simulate measures everything, and prints it last as one JSON object", {
  timeout: 300_000,
}, async () => {
  expect(await runQuickly("simulate")).toEqual({
    suite: "simulate",
    requests: 20_000,
    log_mib: number,
    requests_per_cpu_s: {
      read_only: number,
      checks_alone: number,
      one_policy_set: number,
      one_policy_set_gzip: number,
      two_policy_sets: number,
    },
    large_log: { log_mib: 4, requests: number, resident_mib: number },
  });
});
