import { openPolicyStore } from "@sluice/sql";
import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";
import { type ConsoleWorld, untilNodesAreCurrent } from "../world/start-console-world.ts";

async function makeCode({ world }: ConsoleBrowser): Promise<string> {
  const answer = await fetch(`${world.url}/api/v1/session/codes`, {
    method: "POST",
    headers: { authorization: `Bearer ${world.tokens.viewer}` },
  });
  const { code } = (await answer.json()) as { code: string };
  return code;
}

export function describeSignIn(use: () => ConsoleBrowser): void {
  describe("signs in", () => {
    it("by token, and leads back to the view that was asked for", async () => {
      const watched = await use().openStranger();
      const { page } = watched;
      await watched.allowing(/401/, async () => {
        await page.goto(`${use().world.url}/denials?policy=search`);
        await page.getByLabel("Token").fill(use().world.tokens.viewer);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("heading", { level: 1, name: "Denials" }).waitFor();
      });
      expect(new URL(page.url()).search).toBe("?policy=search");
      const cookies = await watched.context.cookies();
      expect(cookies).toHaveLength(1);
      expect(cookies[0]).toMatchObject({ httpOnly: true, sameSite: "Strict" });
      watched.keepSecret(cookies[0]!.value);
      // What the view asked for at that moment is refused.
      await watched.allowing(/401/, async () => {
        await page.getByRole("button", { name: "Account" }).click();
        await page.getByRole("menuitem", { name: "Sign out" }).click();
        await page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
      });
      expect(await watched.context.cookies()).toEqual([]);
      await watched.close();
    });

    it("out in every tab of the browser, whichever server a tab listens to", async () => {
      const watched = await use().openAs("viewer", "/audit");
      const { page, context } = watched;
      await watched.allowing(/401|ERR_FAILED/, async () => {
        const other = await context.newPage();
        // As if its stream came from a server that does not know of the end.
        await other.route("**/api/v1/live/**", (route) => route.abort());
        await other.goto(`${use().world.url}/audit`);
        await other.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
        await page.getByRole("button", { name: "Account" }).click();
        await page.getByRole("menuitem", { name: "Sign out" }).click();
        await other.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
      });
      await watched.close();
    });

    it("says so if a token is unknown, and keeps it nowhere", async () => {
      const watched = await use().openStranger();
      watched.keepSecret("sluice_wrong_token");
      await watched.allowing(/401/, async () => {
        await watched.page.goto(use().world.url);
        await watched.page.getByLabel("Token").fill("sluice_wrong_token");
        await watched.page.getByRole("button", { name: "Sign in" }).click();
        await watched.page.getByRole("alert").getByText("You are not signed in").waitFor();
      });
      expect(await watched.page.getByLabel("Token").inputValue()).toBe("");
      await watched.close();
    });

    it("by a link once: its code leaves the history, and the second use is refused", async () => {
      const code = await makeCode(use());
      const watched = await use().openStranger();
      watched.keepSecret(code);
      const { page } = watched;
      await watched.allowing(/401/, async () => {
        await page.goto(`${use().world.url}/audit#code=${code}`);
        await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
      });
      expect(page.url()).not.toContain("code");
      await page.goBack();
      expect(page.url()).not.toContain(code);
      await page.goForward();
      await watched.close();

      const again = await use().openStranger();
      again.keepSecret(code);
      await again.allowing(/401/, async () => {
        await again.page.goto(`${use().world.url}/#code=${code}`);
        await again.page.getByRole("alert").getByText("You are not signed in").waitFor();
      });
      await again.close();
    });

    const endings = {
      "is revoked": ({ admin }: ConsoleWorld, id: string) => admin.tokens.revoke(id),
      "has expired": ({ store }: ConsoleWorld, id: string) => expireToken(store, id),
    };
    it.each(Object.entries(endings))("again when its token %s: at once, and at the same address", async (_, end) => {
      const { world } = use();
      const soon = { name: "short", role: "viewer", expiresMs: Date.now() + 3_600_000 } as const;
      const { token } = await world.admin.tokens.make(soon);
      await untilNodesAreCurrent(world.admin);
      const watched = await use().openStranger();
      watched.keepSecret(token.token!);
      const { page } = watched;
      const questions: string[] = [];
      await watched.allowing(/401/, async () => {
        await page.goto(`${world.url}/audit?kind=token`);
        await page.getByLabel("Token").fill(token.token!);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
        await page.getByText("Live", { exact: true }).waitFor();
        page.on("request", (request) => questions.push(new URL(request.url()).pathname));
        await end(world, token.id);
        await page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
      });
      // The stream says that the session has ended: asking about it again would count as a failed log-in.
      expect(questions).not.toContain("/api/v1/session");
      expect(new URL(page.url()).searchParams.get("to")).toBe("/audit?kind=token");
      await watched.close();
    });
  });
}

/** As if its time were over. */
async function expireToken(url: string, id: string): Promise<void> {
  const store = await openPolicyStore({ url });
  try {
    await store.change(async (change) => {
      await change.putToken({ ...(await change.token(id))!, expiresMs: Date.now() });
      await change.nextGeneration();
    });
  } finally {
    await store.close();
  }
}
