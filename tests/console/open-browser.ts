import { type Browser, chromium } from "playwright-core";

/** The browser of the machine, as Debian installs it: Playwright's own is not downloaded. */
const executablePath = "/usr/bin/chromium";

/** Chromium with a profile of its own, which asks nobody but the servers that a page names. It ends with this process. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    timeout: 60_000,
    args: [
      // Chromium refuses to start as root with its sandbox, and only ever opens our own pages here.
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}
