/**
 * Whether a subject is among the first `percent` of a rollout. The same on every node and for ever: a subject that is
 * in at 1 % is still in at 10 %. FNV-1a over policy and value, in 10 000 steps of a hundredth of a percent.
 */
export function inRollout(policyId: string, value: string, percent: number): boolean {
  let hash = 0x811c9dc5;
  const text = `${policyId}|${value}`;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // FNV's low bits are poor at the last character; fold the high ones over them.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return (hash >>> 0) % 10_000 < percent * 100;
}
