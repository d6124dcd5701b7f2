import { tokenDigest } from "@sluice/protocol/tokens";
import { openPolicyStore } from "@sluice/sql";
import { startPostgres } from "@sluice/test-servers";
import { expect, it } from "vitest";
import { admin, document, openTestControl } from "../control-plane/testing/open-test-control.ts";
import { makeTokenAtStore } from "./make-token-at-store.ts";

it("makes a token in PostgreSQL while servers run, and says if PostgreSQL is unavailable", async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const store = await openPolicyStore({ url });
  const control = await openTestControl({ store });
  await control.policies.put(admin, "orders", document("10/s"));
  const make = () =>
    makeTokenAtStore({ url }, { name: "rescue", role: "admin", team: undefined, expiresMs: undefined });
  const { token } = await make();
  const tokens = await store.read((view) => view.tokens());
  expect(tokens).toMatchObject([{ name: "rescue", role: "admin", sha256: tokenDigest(token.token!) }]);
  expect((await control.audit.list(admin, { kind: "token" })).items).toMatchObject([
    { actor: "sluice", target: "rescue", why: "made at the policy store itself", outcome: "done" },
  ]);
  await expect(make()).rejects.toMatchObject({ exitCode: 4 });
  await control.close();
  await store.close();
  await server.close();
  await expect(make()).rejects.toMatchObject({ exitCode: 5, message: expect.not.stringContaining(url) });
}, 60_000);
