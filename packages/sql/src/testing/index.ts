export {
  type PolicyStoreCase,
  type PolicyStoreUnderTest,
  policyStoreContract,
  readEverything,
} from "./policy-store-contract.ts";
export { sample } from "./sample-records.ts";
