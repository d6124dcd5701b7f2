import { expect, it } from "vitest";
import { runQuickly } from "./measure/run-quickly.ts";

const number = expect.any(Number);

it("npm run bench -- service measures everything, and prints it last as one JSON object", {
  timeout: 300_000,
}, async () => {
  const { cpu_us_per_check, ...result } = await runQuickly("service");
  expect(Object.keys(cpu_us_per_check as object)).toHaveLength(14);
  expect(result).toEqual({
    suite: "service",
    grpc_unary_per_s: number,
    grpc_unary_checks_per_cpu_s: number,
    grpc_unary_leased_checks_per_cpu_s: number,
    rls_unary_checks_per_cpu_s: number,
    grpc_stream64_checks_per_cpu_s: number,
    http_per_s: number,
    http_batch64_checks_per_cpu_s: number,
    resp_pipelined_per_cpu_s: number,
    resp_cl_throttle_per_cpu_s: number,
    grpc_stream64_valkey_undecided_share: number,
    p50_ms: number,
    p99_ms: number,
    ratio: {
      grpc_unary_vs_bare_grpcjs_echo: number,
      grpc_unary_leased_vs_memory: number,
      http_vs_bare_node_echo: number,
      http_vs_bare_fastify_echo: number,
      client_batched_vs_one_call: number,
    },
  });
});

it("npm run bench -- soak runs traffic over every protocol, and reports memory", { timeout: 300_000 }, async () => {
  const memory = { first: number, last: number, per_minute: number };
  expect(await runQuickly("soak")).toEqual({
    suite: "soak",
    minutes: number,
    checks: number,
    heap_mib: memory,
    resident_mib: memory,
    samples: expect.arrayContaining([[number, number, number]]),
  });
});
