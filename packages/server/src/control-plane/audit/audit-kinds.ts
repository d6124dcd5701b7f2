/** What the audit has records of. The first part of each action is one of them: `policy.put`. */
export const auditKinds = [
  "policy",
  "rollout",
  "subject",
  "token",
  "kill_switch",
  "configuration",
  "audit",
  "node",
  "hot_key",
  "server",
] as const;
