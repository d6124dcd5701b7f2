import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";

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

    it("again when its token is revoked or has expired, and keeps the address", async () => {
      const { world } = use();
      const soon = { name: "short", role: "viewer", expiresMs: Date.now() + 3_600_000 } as const;
      const { token } = await world.admin.tokens.make(soon);
      const watched = await use().openStranger();
      watched.keepSecret(token.token!);
      const { page } = watched;
      await watched.allowing(/401/, async () => {
        await page.goto(`${world.url}/audit`);
        await page.getByLabel("Token").fill(token.token!);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
        await world.admin.tokens.revoke(token.id);
        await page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
      });
      expect(decodeURIComponent(page.url())).toContain("/audit");
      await watched.close();
    });
  });
}
