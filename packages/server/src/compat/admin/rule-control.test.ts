import { readShape } from "sluice/shape";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createRoleActor, type StartedAdmin, startAdmin } from "../../control-plane/admin-api/testing/start-admin.ts";
import { createRule, deleteRule, type RulePolicies, replaceRule } from "./rule-control.ts";
import type { WrittenRule } from "./rule-vocabulary.ts";
import { scopeVocabulary } from "./scope-vocabulary.ts";

const actor = createRoleActor("admin");
let admin: StartedAdmin;

beforeEach(async () => {
  admin = await startAdmin();
});

afterEach(async () => {
  await admin.close();
});

function written(more: object = {}): WrittenRule {
  const read = readShape(scopeVocabulary.created, {
    rule_id: "r",
    scope: "user",
    max_requests: 1,
    window_seconds: 1,
    ...more,
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.value;
}

/** Policies that another caller changes right after they were read. */
function changedMeanwhile(policies: RulePolicies): RulePolicies {
  return {
    list: (...args) => policies.list(...args),
    put: (...args) => policies.put(...args),
    delete: (...args) => policies.delete(...args),
    async get(who, id) {
      const stored = await policies.get(who, id);
      const limits = [{ ...(stored.document.limits as object[])[0], tiers: { gold: { windows: ["9/s"] } } }];
      await policies.put(who, id, { ...stored.document, limits }, { expected: stored.version });
      return stored;
    },
  };
}

it("loses nothing that was changed between reading and writing, even if the caller guesses its version", async () => {
  const { policies } = admin.control;
  await createRule(policies, actor, written(), scopeVocabulary, {});
  const racing = changedMeanwhile(policies);
  const conflict = { code: "version_conflict" };
  const wanted = written({ max_requests: 5 });
  await expect(replaceRule(racing, actor, "r", wanted, scopeVocabulary, { expected: 2 })).rejects.toMatchObject(
    conflict,
  );
  const { document, version } = await policies.get(actor, "r");
  expect(version).toBe(2);
  expect(document).toMatchObject({ limits: [{ tiers: { gold: { windows: ["9/s"] } } }] });
});

it("creates one of two concurrent rules for the same subjects", async () => {
  const { policies } = admin.control;
  const make = (id: string): Promise<unknown> =>
    createRule(policies, actor, written({ rule_id: id, api: "/x" }), scopeVocabulary, {});
  const made = await Promise.allSettled([make("one"), make("two")]);
  expect(made.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const refused = made.find((one) => one.status === "rejected");
  expect(refused?.reason).toMatchObject({ code: "already_exists", message: expect.stringMatching(/one|two/) });
});

it("deletes the policy with its last rule, and can create it again", async () => {
  const { policies } = admin.control;
  await createRule(policies, actor, written(), scopeVocabulary, {});
  await deleteRule(policies, actor, "r", { expected: 1 });
  await expect(policies.get(actor, "r")).rejects.toMatchObject({ code: "resource_not_found" });
  await expect(createRule(policies, actor, written(), scopeVocabulary, {})).resolves.toMatchObject({ dryRun: false });
});
