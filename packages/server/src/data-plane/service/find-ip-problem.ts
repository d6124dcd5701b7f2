import { parseIp } from "sluice/internal";

/** What is wrong with an address; undefined if it is valid or absent. */
export function findIpProblem(text: string | undefined): string | undefined {
  if (text === undefined || text === "" || parseIp(text) !== undefined) return undefined;
  return `must be an IP address, such as 203.0.113.7 or 2001:db8::1, but is ${JSON.stringify(text.slice(0, 64))}`;
}
