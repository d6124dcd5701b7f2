export { preparePolicy } from "../match/compile-policy.ts";
export { type AssembledPolicies, assemblePolicies, type PolicyPart } from "../policy/assemble-policies.ts";
export { type ReadPolicies, readPolicyDocument, type Sited } from "../policy/read-policy-document.ts";
export { isAboutKey } from "../shape/reading.ts";
export {
  findPolicyDialect,
  type NamedInFiles,
  type ParsedPolicyFiles,
  type ParsedPolicyText,
  type ParsePolicyFilesOptions,
  type PolicyDialect,
  type PolicyText,
  parsePolicyFiles,
  parsePolicyText,
} from "./parse-policy-text.ts";
export type { RateLimitsRuntime } from "./rate-limits-runtime.ts";
export { renderYaml } from "./render-yaml.ts";
export { parseYamlDocument, type YamlDocument } from "./yaml-document.ts";
