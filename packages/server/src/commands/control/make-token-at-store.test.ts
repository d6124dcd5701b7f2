import { openPolicyStore } from "@sluice/sql";
import { startPostgres } from "@sluice/test-servers";
import { expect, it } from "vitest";
import { admin, document, openTestControl } from "../../control-plane/testing/open-test-control.ts";
import { digestOfToken } from "../../data-plane/access/make-token.ts";
import { makeTokenAtStore } from "./make-token-at-store.ts";

it("makes a token in PostgreSQL beside servers that run, and tells where PostgreSQL is away", async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const store = await openPolicyStore({ url });
  const control = await openTestControl({ store });
  await control.policies.put(admin, "orders", document("10/s"));
  let out = "";
  const terminal = { stdout: { write: (text: string) => (out += text) }, stderr: { write: () => {} } };
  const make = (): Promise<number> => makeTokenAtStore(url, { name: "rescue", role: "admin" }, terminal);
  expect(await make()).toBe(0);
  const tokens = await store.read((view) => view.tokens());
  expect(tokens).toMatchObject([{ name: "rescue", role: "admin", sha256: digestOfToken(out.trim()) }]);
  expect((await control.audit.list(admin, { kind: "token" })).items).toMatchObject([
    { actor: "sluice", target: "rescue", why: "made at the policy store itself", outcome: "done" },
  ]);
  await expect(make()).rejects.toMatchObject({ exitCode: 4 });
  await control.close();
  await store.close();
  await server.close();
  await expect(make()).rejects.toMatchObject({ exitCode: 5, message: expect.not.stringContaining(url) });
}, 60_000);
