import type { Browser, BrowserContext, BrowserContextOptions, ConsoleMessage, Page } from "playwright-core";

/** How long an action in the page may take: a busy machine is slow, and a missing element fails anyway. */
const patienceMs = 30_000;

export interface WatchOptions {
  /** The origin that the page may ask. */
  readonly origin: string;
  /** Texts that must not be in the page, its address, its storage or its console. */
  readonly secrets?: readonly string[];
  readonly context?: BrowserContextOptions;
}

/** A page in a context of its own, with everything that is wrong in it. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Further texts that must not appear. */
  keepSecret(text: string): void;
  /** While `work` runs, these messages of the console are expected: a refused request is one. */
  allowing(expected: RegExp, work: () => Promise<void>): Promise<void>;
  /** What went wrong until now, one line each. */
  readonly problems: readonly string[];
  /** Looks for secrets, closes the page, and throws if anything was wrong. */
  close(): Promise<void>;
}

/**
 * Opens a page, and notes errors in its console, violations of its content security policy, exceptions and rejections that it does
 * not handle, and requests to any other host.
 */
export async function watchPage(browser: Browser, options: WatchOptions): Promise<WatchedPage> {
  const { origin, context: asked } = options;
  const secrets = new Set(options.secrets);
  const problems: string[] = [];
  const said: string[] = [];
  let expected: RegExp | undefined;
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...asked });
  context.setDefaultTimeout(patienceMs);
  await context.addInitScript({ content: reportViolations });
  context.on("request", (request) => {
    const url = request.url();
    if (/^(data|blob|about):/.test(url) || new URL(url).origin === origin) return;
    problems.push(`the page asked ${url}`);
  });
  context.on("console", (message: ConsoleMessage) => {
    said.push(message.text());

    if (message.type() !== "error" || expected?.test(message.text()) === true) return;
    problems.push(`the console says: ${message.text()} (${message.location().url})`);
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`the page throws: ${error.stack ?? error.message}`));

  return {
    page,
    context,
    keepSecret: (text) => secrets.add(text),
    problems,
    async allowing(pattern, work): Promise<void> {
      expected = pattern;
      try {
        await work();
      } finally {
        expected = undefined;
      }
    },
    async close(): Promise<void> {
      const places = { ...(await placesIn(page)), console: said.join("\n") };
      for (const secret of secrets)
        for (const [place, text] of Object.entries(places))
          if (text.includes(secret)) problems.push(`a secret is in ${place}`);
      await context.close();
      if (problems.length > 0) throw new Error(`the page had problems:\n${problems.join("\n")}`);
    },
  };
}

/** Runs in the page before its own scripts, and reports each violation with the directive that it is against. */
const reportViolations = `document.addEventListener("securitypolicyviolation", (event) => {
  console.error("content security policy: " + event.effectiveDirective + " forbids " + event.blockedURI + " " + event.sample);
});`;

/** Where a secret could be, as an object of texts. What is typed into a field is not part of the markup. */
const readPlaces = `({
  "the markup": document.documentElement.outerHTML,
  "a field": [...document.querySelectorAll("input, textarea")].map((field) => field.value).join("\\n"),
  "the address": location.href + " " + document.cookie,
  "local storage": JSON.stringify({ ...localStorage }),
  "session storage": JSON.stringify({ ...sessionStorage }),
})`;

function placesIn(page: Page): Promise<Readonly<Record<string, string>>> {
  return page.evaluate(readPlaces);
}
