export { type FollowOptions, followPolicyFile, type PolicyFollower } from "./follow-policy-file.ts";
export { policyFile } from "./policy-file.ts";
