export { type FollowOptions, followPolicyFile, type PolicyFollower } from "./follow-policy-file.ts";
export { isPolicyFileName } from "./is-policy-file-name.ts";
export { policyFile } from "./policy-file.ts";
export { findPolicyFiles, type PolicyFile, readPolicyFiles, unreadablePolicies } from "./read-policy-files.ts";
