export { type PolicyStoreCase, type PolicyStoreUnderTest, readEverything } from "./contract/policy-store-case.ts";
export { policyStoreContract } from "./policy-store-contract.ts";
export { sample } from "./sample-records.ts";
