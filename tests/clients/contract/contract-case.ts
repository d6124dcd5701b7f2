import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { CheckRequest, Decision, type DeepPartial } from "@sluice/protocol";
import type { Call, ContractClient, Need, Outcome } from "./contract-client.ts";
import type { ContractWorld } from "./contract-world.ts";

/** One thing that every client of every engine can rely on. */
export interface ContractCase {
  /** A sentence about the server. */
  readonly name: string;
  readonly needs: readonly Need[];
  run(client: ContractClient, world: ContractWorld): Promise<void>;
}

/** The codes of gRPC that cases name. */
export const code = {
  none: -1,
  ok: 0,
  cancelled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export const checkPath = "/sluice.v1.RateLimiter/Check";

export function checkCall(request: DeepPartial<CheckRequest>, more: Partial<Call> = {}): Call {
  return { method: checkPath, requests: [CheckRequest.encode(CheckRequest.fromPartial(request)).finish()], ...more };
}

/** The decision of a call that was answered. */
export function decisionFrom(outcome: Outcome): Decision {
  assertCode(outcome, code.ok);
  assert.equal(outcome.responses.length, 1);
  return Decision.decode(outcome.responses[0]!);
}

export function assertCode({ code: found, message }: Outcome, wanted: number): void {
  assert.equal(found, wanted, `status ${found} (${message}), and not ${wanted}`);
}

const patienceMs = 30_000;

/** Resolves once it is true; a busy machine may take a while. */
export async function eventually(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  const untilMs = performance.now() + patienceMs;
  while (!(await isSo())) {
    if (performance.now() > untilMs) assert.fail(`not within ${patienceMs} ms: ${what}`);
    await sleep(10);
  }
}
