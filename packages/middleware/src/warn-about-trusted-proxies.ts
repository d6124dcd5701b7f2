import { warnOncePerMinute } from "./warn-once-per-minute.ts";

/** Warns that clients can choose their own address, and so escape every limit by address. */
export function warnAboutTrustedProxies(framework: string, setting: string): void {
  warnOncePerMinute(
    "SLUICE_TRUSTS_ANYBODY",
    `${framework} trusts X-Forwarded-For from every client (\`${setting}\` is true), so a client can choose its own address; ` +
      `set \`${setting}\` to your proxies' addresses, or to their number`,
  );
}
