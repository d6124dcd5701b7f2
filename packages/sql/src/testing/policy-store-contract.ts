import { changeCases } from "./contract/change-cases.ts";
import { denialCases } from "./contract/denial-cases.ts";
import { lifetimeCases } from "./contract/lifetime-cases.ts";
import { listCases } from "./contract/list-cases.ts";
import type { PolicyStoreCase } from "./contract/policy-store-case.ts";
import { recordCases } from "./contract/record-cases.ts";
import { upkeepCases } from "./contract/upkeep-cases.ts";
import { usageCases } from "./contract/usage-cases.ts";

/** What every policy store promises. */
export const policyStoreContract: readonly PolicyStoreCase[] = [
  ...recordCases,
  ...listCases,
  ...changeCases,
  ...upkeepCases,
  ...usageCases,
  ...denialCases,
  ...lifetimeCases,
];
