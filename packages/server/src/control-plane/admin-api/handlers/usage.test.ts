import { afterEach, beforeEach, expect, it } from "vitest";
import { denialSubject } from "../../denials/denial-subject.ts";
import { createRoleActor, type StartedAdmin, startAdmin, team } from "../testing/start-admin.ts";

let admin: StartedAdmin;

beforeEach(async () => {
  admin = await startAdmin();
  const startMs = Math.floor(Date.now() / 60_000) * 60_000 - 120_000;
  for (const [i, [id, owner]] of Object.entries({ ours: team, theirs: "others" }).entries()) {
    const limits = [{ by: ["tenant"], windows: ["5/m"] }];
    const document = { id, owner, match: { endpoint: `/${id}` }, limits, on_failure: "open" };
    await admin.control.policies.put(createRoleActor("admin"), id, document);
    const counts = { decided: 3, allowed: 2, denied: 1, cost: 2, degraded: 0, shadowDenied: 0, denials: [] };
    const sums = ["", `a-${id}`, `b-${id}`].map((subject) => ({
      ...{ policy: id, limit: "tenant", dimension: subject === "" ? "" : "tenant", subject, startMs },
      ...counts,
    }));
    const notes = ["a", "b"].map((name, j) => {
      const atMs = startMs + 10 * i + j;
      const dimensions = { tenant: `${name}-${id}` };
      const foundBy = [{ dimension: "tenant", subject: denialSubject("tenant", dimensions.tenant, undefined) }];
      const about = { id: `${id}${j}`, atMs, sinceMs: atMs, node: "n", policy: id, version: 1, limit: "tenant" };
      const why = { by: ["tenant"], dimensions, requestId: undefined, reason: "over_limit", window: "5/m", cost: 1 };
      const left = { capacity: 5, remaining: 0, retryAfterMs: 1, degraded: undefined, shadow: false };
      return { record: { ...about, ...why, ...left, denials: 1, mixed: false }, foundBy };
    });
    await admin.store.note(async (note) => {
      await note.addUsage({ node: "n", boot: "b", sequence: i + 1, sums });
      await note.addDenials(notes);
    });
  }
});

afterEach(() => admin.close());

const usage = "usage?step=minute&dimension=tenant&group_by=policy,subject&limit=1";

/** All pages, one after another, as the links say. */
async function readAll(role: "editor" | "viewer", path: string): Promise<string> {
  let text = "";
  for (let next: string | undefined = `/api/v1/${path}`; next !== undefined; ) {
    const response = await admin.ask(role, "GET", next);
    expect(response.status).toBe(200);
    text += await response.text();
    next = /^<([^>]+)>/.exec(response.headers.get("link") ?? "")?.[1];
  }
  return text;
}

it.each([
  ["usage in JSON", usage],
  ["usage in CSV", `${usage}&format=csv`],
  ["denials in JSON", "denials?limit=1"],
  ["denials in CSV", "denials?limit=1&format=csv"],
  ["denials in CSV, asked for by policy", "denials?policy=theirs&format=csv"],
  ["denials in CSV, asked for by subject", "denials?dimension=tenant&subject=b-theirs&format=csv"],
])("shows an editor of %s what its team owns, on every page", async (_what, path) => {
  const [own, all] = [await readAll("editor", path), await readAll("viewer", path)];
  expect(all).toContain("b-theirs");
  expect(own).not.toContain("theirs");
  if (!path.includes("theirs")) for (const subject of ["a-ours", "b-ours"]) expect(own).toContain(subject);
});
