import { parseIp, renderIp } from "./ip-address.ts";

/** The address that a host stands for, without brackets. No name server is asked where `localhost` is. */
export function hostAddress(host: string): string {
  const name = host.replace(/^\[(.*)\]$/, "$1");
  return name.toLowerCase() === "localhost" ? "127.0.0.1" : name;
}

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  const ip = parseIp(hostAddress(host));
  return ip !== undefined && /^(127\..*|::1)$/.test(renderIp(ip));
}
