import type { Browser, BrowserContextOptions } from "playwright-core";
import { type WatchedPage, watchPage } from "./watched-page.ts";
import { type ConsoleWorld, type WorldRole, worldRoles } from "./world/start-console-world.ts";

type StorageState = Exclude<BrowserContextOptions["storageState"], string | undefined>;

/** A world, and a browser that looks at it. */
export interface ConsoleBrowser {
  readonly world: ConsoleWorld;
  /** A page of a caller who is not signed in. */
  openStranger(context?: BrowserContextOptions): Promise<WatchedPage>;
  /** A page of a caller with this role, at a path. Each role signs in once. */
  openAs(role: WorldRole, path: string, context?: BrowserContextOptions): Promise<WatchedPage>;
}

/** Who has signed in already. */
const sessionsOf = new WeakMap<ConsoleWorld, Map<WorldRole, Promise<StorageState>>>();

/** Pages of a world in a browser, which the caller closes. */
export function useConsole(browser: Browser, world: ConsoleWorld): ConsoleBrowser {
  const sessions = sessionsOf.get(world) ?? new Map<WorldRole, Promise<StorageState>>();
  sessionsOf.set(world, sessions);
  const secrets = worldRoles.map((role) => world.tokens[role]);
  const session = (role: WorldRole): Promise<StorageState> => {
    const known = sessions.get(role) ?? signIn(browser, world, role);
    sessions.set(role, known);
    return known;
  };
  return {
    world,
    openStranger: (context = {}) => watchPage(browser, { origin: world.url, secrets, context }),
    async openAs(role, path, context) {
      const storageState = await session(role);
      const cookies = storageState.cookies.map(({ value }) => value);
      const watched = await watchPage(browser, {
        origin: world.url,
        secrets: [...secrets, ...cookies],
        context: { ...context, storageState },
      });
      await watched.page.goto(world.url + path);
      return watched;
    },
  };
}

/** The cookies of a caller who has signed in through the API, as the sign-in view does. */
async function signIn(browser: Browser, world: ConsoleWorld, role: WorldRole): Promise<StorageState> {
  const context = await browser.newContext();
  try {
    const answer = await context.request.post(`${world.url}/api/v1/session`, {
      headers: { "x-sluice-console": "1", origin: world.url },
      data: { token: world.tokens[role] },
    });
    if (!answer.ok()) throw new Error(`signing in as ${role} failed: ${answer.status()} ${await answer.text()}`);
    return await context.storageState();
  } finally {
    await context.close();
  }
}
