export {
  PolicyStoreUnavailable,
  RuleTaken,
  SchemaTooNew,
  TokenNameTaken,
  UnstorableValue,
  VersionTaken,
} from "./errors.ts";
export { generationChannel } from "./generation-channel.ts";
export { openPolicyStore } from "./open-policy-store.ts";
export type * from "./policy-store.ts";
export * from "./records.ts";
