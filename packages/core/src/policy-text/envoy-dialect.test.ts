import { describe, expect, it } from "vitest";
import { renderProblem, type SluiceError } from "../errors.ts";
import type { DescriptorNode } from "../policy/descriptor.ts";
import type { Policy } from "../policy/policy.ts";
import { envoyPolicyId } from "./envoy-policy-id.ts";
import { parsePolicyFiles, parsePolicyText } from "./parse-policy-text.ts";

function findProblems(...texts: string[]): string[] {
  try {
    parsePolicyFiles(texts.map((text, i) => ({ text, file: `f${i + 1}` })));
    return [];
  } catch (error) {
    return (error as SluiceError).problems.map(renderProblem);
  }
}

function parseTree(text: string): readonly DescriptorNode[] {
  return parsePolicyText(text).policySet.descriptors![0]!.descriptors;
}

function readPolicies(text: string): readonly Policy[] {
  return parsePolicyText(text).policySet.policies;
}

const day = 24 * 60 * 60 * 1000;

describe("Envoy's format", () => {
  const text = `
domain: shop
descriptors:
  # All callers together.
  - key: generic_key
    value: checkout
    rate_limit:
      name: checkout
      unit: second
      requests_per_unit: 500
    metadata: { owner: payments, anything: [1, 2] }
  # Each address, and one that is watched only.
  - key: remote_address
    detailed_metric: true
    value_to_metric: true
    rate_limit: { unit: minute, requests_per_unit: 60 }
  - key: remote_address
    value: 203.0.113.9
    shadow_mode: true
    rate_limit: { unit: HOUR, requests_per_unit: 0 }
  - key: plan
    value: partner
    rate_limit:
      unlimited: true
      replaces:
        - name: checkout
  - key: path
    value: /files/*
    share_threshold: true
    rate_limit: { unit: week, requests_per_unit: 7 }
    descriptors:
      - key: user
        quota_mode: true
        rate_limit: { unit: month, requests_per_unit: 30 }
      - key: code
        value: 007
        rate_limit: { unit: year, requests_per_unit: 4294967295 }
  - key: nothing
    value: ""
    rate_limit:
    descriptors:
`;

  it("loads as it is, with every key there is", () => {
    const { policySet, dialect, warnings } = parsePolicyText(text);
    expect(dialect).toBe("envoy");
    expect(warnings).toEqual([]);
    expect(policySet.policies.map(({ id }) => id)).toEqual([
      "envoy:shop/generic_key:checkout",
      "envoy:shop/remote_address",
      "envoy:shop/remote_address:203.0.113.9",
      "envoy:shop/plan:partner",
      "envoy:shop/path:@2ffiles@2f@2a",
      "envoy:shop/path:@2ffiles@2f@2a/user",
      "envoy:shop/path:@2ffiles@2f@2a/code:007",
    ]);
    const lengths = policySet.policies.map(({ limits }) => limits[0]?.windows[0]?.per);
    const perMs = [1_000, 60_000, 3_600_000, undefined, 7 * day, 30 * day, 365 * day];
    expect(lengths).toEqual(perMs.map((ms) => ms && { kind: "ms", ms }));
    for (const { match, limits } of policySet.policies) {
      expect(match).toMatchObject({ domain: "shop", named: true });
      for (const limit of limits) expect(limit).toMatchObject({ algorithm: "fixed_window", by: ["descriptor"] });
    }
  });

  it("makes a tree of descriptors and of limits, which are policies", () => {
    const [checkout, address, watched, partner, files, nothing] = parseTree(text);
    expect(checkout).toMatchObject({
      key: "generic_key",
      value: "checkout",
      mode: "enforce",
      limits: [{ policy: "envoy:shop/generic_key:checkout", name: "checkout", unlimited: false, replaces: [] }],
    });
    expect(address).not.toHaveProperty("value");
    expect(watched).toMatchObject({ mode: "shadow" });
    expect(partner).toMatchObject({ limits: [{ unlimited: true, replaces: ["checkout"] }] });
    expect(files).toMatchObject({ shared: true, children: [{ mode: "quota" }, { value: "007" }] });
    expect(nothing).toEqual({ key: "nothing", limits: [], mode: "enforce", shared: false, children: [] });
  });

  it("takes values for texts as they are written", () => {
    const values = ["404", "true", "1.10", "0x1F", "2026-01-01", "yes", '"quoted"'];
    const lines = values.map((value) => `  - { key: k, value: ${value} }`).join("\n");
    expect(parseTree(`domain: d\ndescriptors:\n${lines}`).map(({ value }) => value)).toEqual([
      "404",
      "true",
      "1.10",
      "0x1F",
      "2026-01-01",
      "yes",
      "quoted",
    ]);
    expect(parsePolicyText("domain: 42\ndescriptors: []").policySet.descriptors).toEqual([
      { domain: "42", descriptors: [] },
    ]);
  });

  it("knows the same words for yes and no as its own server", () => {
    const tree = parseTree(`domain: d
descriptors:
  - { key: a, shadow_mode: yes, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: b, shadow_mode: off, rate_limit: { unlimited: on } }`);
    expect(tree).toMatchObject([{ mode: "shadow" }, { mode: "enforce", limits: [{ unlimited: true }] }]);
  });

  it("may use anchors, aliases and merge keys, by which values stay as they are written", () => {
    const tree = parseTree(`domain: d
descriptors:
  - &base
    key: code
    value: 007
    rate_limit: &daily { unit: day, requests_per_unit: 1 }
  - { <<: *base, key: other }
  - { key: third, rate_limit: { <<: *daily, requests_per_unit: 5 } }`);
    expect(tree.map(({ key, value }) => [key, value])).toEqual([
      ["code", "007"],
      ["other", "007"],
      ["third", undefined],
    ]);
    const text =
      "domain: d\ndescriptors: [{ key: a, rate_limit: &x { unit: days } }, { key: b, rate_limit: { <<: *x } }]";
    expect(findProblems(text).filter((problem) => problem.includes("unit: must"))).toEqual([
      expect.stringMatching(/^f1:2:48 descriptors\[0\].rate_limit.unit/),
      expect.stringMatching(/^f1:2:48 descriptors\[1\].rate_limit.unit/),
    ]);
  });

  it("loads as JSON too", () => {
    const json = { domain: "d", descriptors: [{ key: "k", rate_limit: { unit: "day", requests_per_unit: 1 } }] };
    expect(readPolicies(JSON.stringify(json)).map(({ id }) => id)).toEqual(["envoy:d/k"]);
  });

  it("does not warn of fixed windows, nor of on_failure, which it has no words for", () => {
    const { warnings } = parsePolicyText(
      "domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]",
    );
    expect(warnings).toEqual([]);
  });
});

describe("what Sluice adds to Envoy's format", () => {
  it("is windows of any length, and every algorithm", () => {
    const policies = readPolicies(`domain: d
descriptors:
  - key: a
    rate_limit: { per: 15m, requests_per_unit: 5 }
  - key: b
    rate_limit: { per: 1s, requests_per_unit: 10, algorithm: token_bucket, burst: 30 }
  - key: c
    rate_limit: { per: day in Europe/Berlin, requests_per_unit: 1000 }
  - key: e
    rate_limit: { per: never, requests_per_unit: 100 }`);
    expect(policies.map(({ limits }) => [limits[0]!.algorithm, limits[0]!.windows[0]])).toEqual([
      ["fixed_window", { limit: 5, per: { kind: "ms", ms: 900_000 }, burst: 5 }],
      ["token_bucket", { limit: 10, per: { kind: "ms", ms: 1_000 }, burst: 30 }],
      ["fixed_window", { limit: 1000, per: { kind: "calendar", unit: "day", timeZone: "Europe/Berlin" }, burst: 1000 }],
      ["fixed_window", { limit: 100, per: { kind: "never" }, burst: 100 }],
    ]);
  });

  it("is several limits for one descriptor", () => {
    const limits = `
      - { unit: second, requests_per_unit: 10, name: burst }
      - { per: 15m, requests_per_unit: 900, algorithm: sliding_window, replaces: [{ name: old }] }`;
    const text = `domain: d\ndescriptors:\n  - key: old\n    rate_limit: { unit: day, requests_per_unit: 1, name: old }\n  - key: k\n    rate_limits:${limits}`;
    const { policySet } = parsePolicyText(text);
    expect(policySet.policies.slice(1).map(({ id, limits: [limit] }) => [id, limit!.algorithm])).toEqual([
      ["envoy:d/k/:1s", "fixed_window"],
      ["envoy:d/k/:15m", "sliding_window"],
    ]);
    expect(parseTree(text)[1]!.limits).toMatchObject([
      { policy: "envoy:d/k/:1s", name: "burst" },
      { policy: "envoy:d/k/:15m", replaces: ["old"] },
    ]);
  });

  it("holds for everything inside, until something else is written", () => {
    const text = `domain: d
algorithm: sliding_window
on_failure: closed
descriptors:
  - key: a
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: b
    on_failure: local
    charge_denied: true
    descriptors:
      - { key: c, rate_limit: { unit: day, requests_per_unit: 1, algorithm: gcra } }
      - { key: e, charge_denied: false, rate_limit: { unit: day, requests_per_unit: 1, on_failure: open } }`;
    const chosen = readPolicies(text).map(({ limits, onFailure }) => [limits[0]!.algorithm, onFailure]);
    expect(chosen).toEqual([
      ["sliding_window", "closed"],
      ["gcra", "local"],
      ["sliding_window", "open"],
    ]);
    const [a, b] = parseTree(text);
    expect([a, ...b!.children].map((node) => node!.limits[0]!.chargeDenied)).toEqual([false, true, false]);
  });
});

describe("problems in Envoy's format", () => {
  it("are all reported at once, each with its place, and with what was probably meant", () => {
    const text = `domain: ""
descriptors:
  - kye: a
  - key: b
    rate_limit: { unit: minut, requests_per_unit: -1 }
  - key: b
    rate_limit: { unit: 15m, requests_per_uint: 1 }
  - key: c
    rate_limit: { unit: minute, unlimited: true }
  - key: e
    shadow: true
    rate_limit: { shadow_mode: true, unit: day, name: n, replaces: [{ name: n }, { nme: x }], requests_per_unit: 2 }
  - key: f
    rate_limit: {}
  - key: g
    rate_limit: { unit: day, requests_per_unit: 1 }
    rate_limits:
      - { unit: day, requests_per_unit: 2 }
      - { per: 24h, requests_per_unit: 3 }
      - { unlimited: true }
      - { unit: hour, per: 1h, requests_per_unit: 2 }
      - { unit: second, requests_per_unit: 10, burst: 5 }
  - key:
    value: [1]
`;
    expect(findProblems(text)).toEqual([
      "f1:1:9 domain: must have 1 to 255 characters, but has 0",
      "f1:3:5 descriptors[0].kye: is not a known key; did you mean key?",
      'f1:5:25 descriptors[1].rate_limit.unit: must be one of second, minute, hour, day, week, month, year, but is "minut"; did you mean minute?',
      "f1:5:51 descriptors[1].rate_limit.requests_per_unit: must be a whole number from 0 to 4294967295, but is -1",
      "f1:6:5 descriptors[2]: is b, as is descriptors[1]; write it once",
      "f1:7:25 descriptors[2].rate_limit.unit: must be one of second, minute, hour, day, week, month, year; for other lengths write per: 15m",
      "f1:7:30 descriptors[2].rate_limit.requests_per_uint: is not a known key; did you mean requests_per_unit?",
      "f1:9:25 descriptors[3].rate_limit.unit: goes with a limit, and this is unlimited; leave out one of the two",
      "f1:11:5 descriptors[4].shadow: is not a known key; known here: key, value, rate_limit, rate_limits, descriptors, shadow_mode, quota_mode, detailed_metric, value_to_metric, share_threshold, metadata, algorithm, on_failure, charge_denied",
      "f1:12:19 descriptors[4].rate_limit.shadow_mode: does not belong here; write it next to the limit, in its descriptor",
      "f1:12:77 descriptors[4].rate_limit.replaces[0].name: is the limit itself; name the ones it replaces",
      "f1:12:84 descriptors[4].rate_limit.replaces[1].nme: is not a known key; did you mean name?",
      "f1:14:17 descriptors[5].rate_limit.unit: is missing; write unit: minute, or per: 15m for any other length",
      "f1:14:17 descriptors[5].rate_limit.requests_per_unit: is missing; write how many requests a unit has",
      "f1:18:7 descriptors[6].rate_limits: cannot be combined with rate_limit; write one of the two",
      "f1:19:9 descriptors[6].rate_limits[1]: lasts as long as descriptors[6].rate_limits[0]; keep the stricter one",
      "f1:20:22 descriptors[6].rate_limits[2].unlimited: is not a limit; leave it out, or write rate_limit",
      "f1:21:28 descriptors[6].rate_limits[3].per: cannot be combined with unit; write one of the two",
      "f1:22:55 descriptors[6].rate_limits[4].burst: does not belong to fixed_window: only gcra, token_bucket, leaky_bucket have a burst; leave it out or change the algorithm",
      "f1:23:9 descriptors[7].key: must be a text, but is empty",
      "f1:24:12 descriptors[7].value: must be a text, but is a list",
    ]);
  });

  it.each([
    ["descriptors: []", "f1:1:1 domain: is missing; write the domain that Envoy asks with"],
    ["domain: d\ndescriptor: []", "f1:2:1 descriptor: is not a known key; did you mean descriptors?"],
    ["domain: d\ndescriptors: {}", "f1:2:14 descriptors: must be a list, but is an object"],
    ["domain: d\ndomain: e\ndescriptors: []", "f1:2:1 (root): has the key domain twice in one object; write it once"],
    [
      "domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, unit: day, requests_per_unit: 1 } }]",
      "f1:2:50 (root): has the key unit twice in one object; write it once",
    ],
    [
      "domain: d\ndescriptors: [{ key: k, rate_limit: { unlimited: true, per: 1h } }]",
      "f1:2:61 descriptors[0].rate_limit.per: goes with a limit, and this is unlimited; leave out one of the two",
    ],
    [
      "domain: d\ndescriptors: [{ key: k, value: v }, { key: k, value: v }]",
      "f1:2:37 descriptors[1]: is k v, as is descriptors[0]; write it once",
    ],
  ])("%s", (text, problem) => {
    expect(findProblems(text)).toEqual([problem]);
  });

  it("name both files if a domain is in two of them", () => {
    const text = "domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]";
    expect(findProblems(text, text)).toEqual([
      "f2:1:9 domain: is d, as in f1; write all descriptors of a domain in one file",
    ]);
    expect(findProblems(text, text.replace("domain: d", "domain: e"))).toEqual([]);
  });

  it("are few if a file is nested too deeply", () => {
    let text = "{ key: k }";
    for (let depth = 0; depth < 40; depth++) text = `{ key: k, descriptors: [${text}] }`;
    const problems = findProblems(`domain: d\ndescriptors: [${text}]`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("are more than 16 levels deep");
  });

  it("are few and quickly found if descriptors contain themselves", () => {
    const descriptors = ["a", "b", "c", "e", "f"].map((key) => `{ key: ${key}, descriptors: *x }`);
    const problems = findProblems(`domain: d\ndescriptors: &x [${descriptors.join(", ")}]`);
    expect(problems).toEqual(["f1:2:41 (root): uses the anchor x inside of itself"]);
  });

  it("include a warning if limits replace each other in a ring, which switches all of them off", () => {
    const limit = (key: string, ...replaces: string[]): string =>
      `  - { key: ${key}, rate_limit: { unit: day, requests_per_unit: 1, name: ${key}, replaces: [${replaces
        .map((name) => `{ name: ${name} }`)
        .join(", ")}] } }`;
    const findWarnings = (...limits: string[]): string[] =>
      parsePolicyText(`domain: d\ndescriptors:\n${limits.join("\n")}`).warnings.map(renderProblem);
    expect(findWarnings(limit("a", "b"), limit("b", "c"), limit("c", "a"))).toEqual([
      expect.stringMatching(
        /^\(text\):5:\d+ descriptors\[2\].rate_limit.replaces\[0\].name: closes a ring: a replaces b replaces c replaces a; a request with all of them is not limited by any$/,
      ),
    ]);
    expect(findWarnings(limit("a", "b", "c"), limit("b", "c"), limit("c"))).toEqual([]);
    const many = Array.from({ length: 3_000 }, (_, i) => limit(`k${i}`, `k${(i + 1) % 3_000}`));
    expect(findWarnings(...many)).toHaveLength(1);
  });

  it("include a warning if something is legal and changes nothing", () => {
    const { warnings } = parsePolicyText(`domain: d
descriptors:
  - { key: a, share_threshold: true, rate_limit: { unit: day, requests_per_unit: 1, name: daily } }
  - { key: b, quota_mode: true, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1, replaces: [{ name: dayly }] } }`);
    expect(warnings.map(({ message }) => message)).toEqual([
      "changes nothing: only a value with * in it has several values to share",
      "changes nothing: in shadow_mode the limit never denies anyway",
      "is dayly, but no limit of the domain has that name; did you mean daily?",
    ]);
  });

  it("lie in one folder with files of other formats", () => {
    const sluice = "policies:\n  - { id: api, limits: [{ by: [user], windows: [1/s] }], on_failure: open }";
    const envoy = "domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]";
    const { policySet, dialects } = parsePolicyFiles([{ text: sluice }, { text: envoy }]);
    expect(dialects).toEqual(["sluice", "envoy"]);
    expect(policySet.policies.map(({ id }) => id)).toEqual(["api", "envoy:d/k"]);
  });
});

describe("ids of Envoy's limits", () => {
  it("are legal ids, and different for different descriptors", () => {
    const ids = [
      envoyPolicyId("d", [{ key: "a", value: "b" }]),
      envoyPolicyId("d", [{ key: "a:b" }]),
      envoyPolicyId("d", [{ key: "a" }, { key: "b" }]),
      envoyPolicyId("d", [{ key: "a/b" }]),
      envoyPolicyId("d/a", [{ key: "b" }]),
      envoyPolicyId("d", [{ key: "a@3ab" }]),
      envoyPolicyId("d", [{ key: "ä", value: "€" }]),
      envoyPolicyId("d", [{ key: "a" }], "15m"),
      envoyPolicyId("d", [{ key: "a", value: "x".repeat(500) }]),
      envoyPolicyId("d", [{ key: "a", value: `${"x".repeat(500)}y` }]),
    ];
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._:/@-]{1,128}$/);
    expect(ids.slice(0, 3)).toEqual(["envoy:d/a:b", "envoy:d/a@3ab", "envoy:d/a/b"]);
  });
});
