/** `@sluice/server/internal`: what Sluice's own benchmarks measure alone. It may change in any release. */
export { deleteOldUsage, rollUpUsage } from "./control-plane/usage/usage-upkeep.ts";
export { UsageSums } from "./observe/usage/usage-sums.ts";
