import { callCases } from "./call-cases.ts";
import type { ContractCase } from "./contract-case.ts";
import type { ClientAdapter } from "./contract-client.ts";
import { networkCases } from "./network-cases.ts";
import { rawCases } from "./raw-cases.ts";
import { streamCases } from "./stream-cases.ts";

/** Everything that the gRPC API promises to any client. */
export const contractCases: readonly ContractCase[] = [...callCases, ...streamCases, ...networkCases, ...rawCases];

/** The cases that a client takes part in. */
export function casesFor({ lacks }: ClientAdapter): readonly ContractCase[] {
  return contractCases.filter(({ needs }) => !needs.some((need) => need in lacks));
}
