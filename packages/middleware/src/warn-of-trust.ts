import { warnOfProcess } from "./warn-of-process.ts";

/** The app lets its clients choose their own addresses, by which they escape every limit that goes by address. */
export function warnOfTrust(framework: string, setting: string): void {
  warnOfProcess(
    "SLUICE_TRUSTS_ANYBODY",
    `${framework} believes X-Forwarded-For from anybody (\`${setting}\` is true), so a client can choose its own address; ` +
      "say which proxies there are, or how many",
  );
}
