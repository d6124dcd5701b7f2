export { centralCountersContract } from "./central-counters-contract.ts";
export { type Conversation, conversationStartMs, conversations, type Step, type StoreAction } from "./conversations.ts";
export { type ContractCase, counterStoreContract, type StoreUnderTest } from "./counter-store-contract.ts";
export { distinctContract } from "./distinct-contract.ts";
export { failingCounters } from "./failing-counters.ts";
export { holdsContract } from "./holds-contract.ts";
export { compileTestLimit, resolvedLimit, type TestLimit, testPolicy, testWindow } from "./test-limit.ts";
