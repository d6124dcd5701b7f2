import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { createRoleActor, startAdmin } from "../../control-plane/admin-api/testing/start-admin.ts";

const page = await readFile(fileURLToPath(new URL("../../../../../docs/admin-rules.md", import.meta.url)), "utf8");

/** Blocks of the page, in order: requests and their answers. */
const blocks = [...page.matchAll(/```(sh|json)\n([\s\S]*?)```/g)].map(([, kind, text]) => ({ kind, text: text! }));

/** Times differ from run to run; everything else is as written. */
function withoutMoments(text: string): unknown {
  return JSON.parse(text, (key, part) => (key.endsWith("_at") ? "(moment)" : part));
}

it("docs/admin-rules.md shows the actual answers", async () => {
  const admin = await startAdmin();
  try {
    let told = "";
    let compared = 0;
    for (const { kind, text } of blocks) {
      if (kind === "sh") {
        const [, path = ""] = /127\.0\.0\.1:8090(\S*)/.exec(text) ?? [];
        const [, body] = /-d '([\s\S]*)'/.exec(text) ?? [];
        const response = await admin.ask("admin", body === undefined ? "GET" : "POST", path, { body });
        told = await response.text();
        expect(response.ok, `${text}${told}`).toBe(true);
      } else if (text.includes('"expressible"')) {
        const document = { id: "search", limits: [{ by: ["user"], windows: ["1/s", "10/m"] }], match: { user: "*" } };
        await admin.control.policies.put(createRoleActor("admin"), "search", document);
        told = await (await admin.ask("viewer", "GET", "/api/v1/rules/search")).text();
        expect(withoutMoments(told)).toEqual(withoutMoments(text));
        compared += 1;
      } else {
        expect(withoutMoments(told)).toEqual(withoutMoments(text));
        compared += 1;
      }
    }
    expect(compared).toBe(3);
    // The policy shown next to the first answer.
    const { document } = await admin.control.policies.get(createRoleActor("admin"), "orders");
    expect(document).toMatchObject({ match: { endpoint: "/v1/orders/**", user: "*" } });
  } finally {
    await admin.close();
  }
});
