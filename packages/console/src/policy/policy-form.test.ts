import { describe, expect, it } from "vitest";
import {
  addLimit,
  newPolicyText,
  readForm,
  removeLimit,
  renderPolicyYaml,
  splitList,
  writeField,
} from "./policy-form.ts";

const text = `# who made this
id: orders
match: { endpoint: /v1/orders/**, method: GET } # reading
limits:
  - by: [tenant] # fair between tenants
    windows: 100/s burst 200
  - name: plan
    windows:
      - { limit: 5, per: 1d }
`;

function formOf(yaml: string) {
  const reading = readForm(yaml);
  if (reading.kind === "unreadable") throw new Error(reading.why);
  return reading.form;
}

describe("a policy as a form", () => {
  it("has its common fields, however they are written", () => {
    expect(formOf(text)).toEqual({
      id: "orders",
      description: "",
      owner: "",
      endpoint: "/v1/orders/**",
      methods: "GET",
      mode: "enforce",
      onFailure: "",
      limits: [
        { name: "", by: "tenant", distinct: "", algorithm: "", windows: "100/s burst 200" },
        { name: "plan", by: "", distinct: "", algorithm: "", windows: undefined },
      ],
    });
  });

  it.each(["id: [", "a: 1\n b: 2", "just words", "- a list", ""])(
    "is none of a text that says no policy: %j",
    (broken) => {
      expect(readForm(broken).kind).toBe("unreadable");
      expect(writeField(broken, ["owner"], "shop")).toBeTypeOf("string");
    },
  );

  it("changes one field of the YAML, and keeps comments and everything else", () => {
    const changed = writeField(writeField(text, ["owner"], "shop"), ["limits", 0, "windows"], ["50/s", "1000/h"]);
    expect(changed).toContain("# who made this");
    expect(changed).toContain("# fair between tenants");
    expect(formOf(changed)).toMatchObject({
      owner: "shop",
      methods: "GET",
      limits: [{ by: "tenant", windows: "50/s, 1000/h" }, {}],
    });
    expect(changed).toContain("windows: [50/s, 1000/h]");
  });

  it("removes a field that is emptied, and a match that says nothing any longer", () => {
    const without = writeField(writeField(text, ["match", "endpoint"], ""), ["match", "method"], []);
    expect(without).not.toContain("match");
    expect(formOf(without)).toMatchObject({ endpoint: "", methods: "" });
    expect(writeField(text, ["owner"], "")).toContain("id: orders");
  });

  it("sets and reads back every field", () => {
    for (const [path, value] of [
      [["id"], "orders.v2"],
      [["description"], "a: b # c"],
      [["match", "endpoint"], "/v2/{a}/*"],
      [["mode"], "shadow"],
      [["on_failure"], "closed"],
    ] as const) {
      const reading = readForm(writeField(text, path, value));
      const document = reading.kind === "form" ? reading.document : {};
      expect(path.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document)).toBe(value);
    }
  });

  it("adds and removes limits", () => {
    expect(formOf(addLimit(text)).limits).toHaveLength(3);
    expect(formOf(addLimit("id: a\n")).limits).toEqual([
      { name: "", by: "user", distinct: "", algorithm: "", windows: "10/s" },
    ]);
    expect(formOf(removeLimit(text, 0)).limits.map(({ name }) => name)).toEqual(["plan"]);
  });

  it("begins with a policy that says what to write", () => {
    expect(formOf(newPolicyText)).toMatchObject({ id: "my-policy", onFailure: "open", limits: [{ by: "tenant" }] });
  });

  it("is written as people write it", () => {
    const long = Array.from({ length: 20 }, (_, at) => `tenant-${at}`);
    expect(
      renderPolicyYaml({ id: "a", limits: [{ by: ["tenant"], windows: ["1/s", "9/m"] }], deny: { tenant: long } }),
    ).toMatch(
      /^id: a\nlimits:\n {2}- by: \[tenant\]\n {4}windows: \[1\/s, 9\/m\]\ndeny:\n {2}tenant:\n {4}- tenant-0\n/,
    );
  });

  it("reads lists as people type them", () => {
    expect(splitList(" GET , post,, ")).toEqual(["GET", "post"]);
    expect(formOf(renderPolicyYaml({ id: "a", match: { method: ["GET", "POST"] } })).methods).toBe("GET, POST");
  });
});
