import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Problem, renderProblem, SluiceError } from "../errors.ts";
import { parsePolicies } from "../policy/parse-policies.ts";
import { parsePolicyFiles, parsePolicyText } from "./parse-policy-text.ts";

function problemsIn(parse: () => unknown): readonly Problem[] {
  try {
    parse();
    return [];
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    expect(error.code).toBe("invalid_policies");
    return error.problems;
  }
}

function findProblems(text: string): string[] {
  return problemsIn(() => parsePolicyText(text, { file: "p.yaml" })).map(renderProblem);
}

/** `line:column path`, without the message. */
function findPlaces(text: string): string[] {
  return findProblems(text).map((problem) => problem.replace(/^p\.yaml:/, "").replace(/: .*/s, ""));
}

const example = `
policies:
  - id: api.read
    match: { endpoint: /v1/orders/**, method: GET }
    limits:
      - by: [tenant]
        windows: [100/s burst 200, 3000/m, 100k/h]     # or { limit: 100, per: 1s, burst: 200 }
      - { name: per-user, by: [tenant, user], windows: [10/s burst 20], tiers: { premium: { windows: [100/s] } } }
      - { by: [ip], algorithm: sliding_window, windows: [1000/m] }
    cost: { /v1/orders/export: 10 }
    on_failure: open
`;

describe("parsePolicyText", () => {
  it("reads policies as they are pleasant to write, without a warning", () => {
    const { policySet, warnings, dialect, runtime } = parsePolicyText(example);
    expect(warnings).toEqual([]);
    expect(dialect).toBe("sluice");
    expect(runtime).toBeUndefined();
    expect(policySet.policies).toMatchObject([
      {
        id: "api.read",
        match: { domain: "default", endpoint: "/v1/orders/**", methods: ["GET"] },
        limits: [
          {
            by: ["tenant"],
            algorithm: "gcra",
            windows: [
              { limit: 100, per: { kind: "ms", ms: 1_000 }, burst: 200 },
              { limit: 3_000, per: { kind: "ms", ms: 60_000 }, burst: 3_000 },
              { limit: 100_000, per: { kind: "ms", ms: 3_600_000 }, burst: 100_000 },
            ],
          },
          {
            name: "per-user",
            by: ["tenant", "user"],
            windows: [{ limit: 10, burst: 20 }],
            tiers: { premium: { windows: [{ limit: 100, burst: 100 }] } },
          },
          { by: ["ip"], algorithm: "sliding_window", windows: [{ limit: 1_000, per: { kind: "ms", ms: 60_000 } }] },
        ],
        cost: [{ endpoint: "/v1/orders/export", cost: 10 }],
        onFailure: "open",
        onFailureChosen: true,
      },
    ]);
  });

  it("reads JSON, indented with tabs too", () => {
    const document = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["10/s"] }], on_failure: "open" }] };
    for (const indent of [undefined, 2, "\t"])
      expect(parsePolicyText(JSON.stringify(document, null, indent)).policySet).toEqual(parsePolicies(document));
  });

  it("reads texts that begin with a byte order mark, and anchors", () => {
    const text = `\uFEFFpolicies:
  - { id: a, on_failure: open, limits: &usual [{ by: user, windows: 10/s }] }
  - { id: b, on_failure: open, limits: *usual }
`;
    const { policies } = parsePolicyText(text).policySet;
    expect(policies[1]?.limits).toEqual(policies[0]?.limits);
  });
});

describe("places", () => {
  it("point at the value that is wrong", () => {
    const text = `policies:
  - id: p
    on_failure: opne
    limits:
      - windows: [10/s, 20/x]
        by: user
`;
    expect(findProblems(text)).toEqual([
      'p.yaml:3:17 policies[0].on_failure: must be one of open, closed, local, but is "opne"; did you mean open?',
      'p.yaml:5:25 policies[0].limits[0].windows[1]: has an unknown unit, "x"; units are ms, s, m, h, d and w',
    ]);
  });

  it("point at an unknown key, and at the parent of a missing one", () => {
    const text = `policies:
  - limits:
      - { windws: 10/s }
      - by: user
        name: x
    onFailure: open
`;
    expect(findPlaces(text)).toEqual([
      "2:5 policies[0].id",
      "3:11 policies[0].limits[0].windws",
      "4:9 policies[0].limits[1].windows",
      "6:5 policies[0].onFailure",
    ]);
  });

  it("point at invalid names of the writer's choice", () => {
    expect(findPlaces("policies: [{ id: p, limits: [{ windows: 1/s }], cost: { v1: 5 } }]")).toEqual([
      "1:57 policies[0].cost.v1",
    ]);
    expect(findPlaces("policies: [{ id: p, limits: [{ windows: 1/s }], match: { methods: GET } }]")).toEqual([
      "1:58 policies[0].match.methods",
    ]);
  });

  it("point at fields in a window that is written in short, as near as they can", () => {
    expect(findPlaces("policies:\n  - id: p\n    limits:\n      - windows:\n          - 1/s burst 0\n")).toEqual([
      "5:13 policies[0].limits[0].windows[0].burst",
    ]);
    expect(findPlaces("policies: [{ id: p, limits: [{ windows: 1/s burst 5, algorithm: sliding_log }] }]")).toEqual([
      "1:41 policies[0].limits[0].windows[0].burst",
    ]);
  });

  it("point at conflicts with other places", () => {
    const text = `policies:
  - { id: a, limits: [{ windows: 1/s }] }
  - { id: a, limits: [{ windows: 1/s }], replaces: [b] }
subjects:
  - { user: u1, limits: [{ policy: c, windows: 1/s }] }
`;
    expect(findPlaces(text)).toEqual([
      "3:11 policies[1].id",
      "3:53 policies[1].replaces[0]",
      "5:36 subjects[0].limits[0].policy",
    ]);
  });

  it("follow an alias to where the value is written", () => {
    const text = `policies:
  - { id: a, limits: &usual [{ windows: 1/x }] }
  - { id: b, limits: *usual }
`;
    expect(findPlaces(text)).toEqual(["2:41 policies[0].limits[0].windows", "2:41 policies[1].limits[0].windows"]);
  });

  it("come in the order of the text", () => {
    const lines = problemsIn(() => parsePolicyText(example.replace("id:", "idd:").replace("[ip]", "[ip, ip]"))).map(
      ({ place }) => place?.line,
    );
    expect(lines).toEqual([3, 9]);
  });

  it("are given to warnings", () => {
    const text = `policies:
  - id: p
    limits:
      - algorithm: fixed_window
        by: user
        windows: 100/s
      - { by: user, windows: [10/s, 1000/m] }
default:
  limits: [{ windows: 5/s, by: user }]
subjects:
  - { user: u1, tier: gold }
`;
    const { warnings } = parsePolicyText(text, { file: "p.yaml" });
    expect(warnings.map((warning) => renderProblem(warning).replace(/: .*/s, ""))).toEqual([
      "p.yaml:2:5 policies[0].on_failure",
      "p.yaml:4:20 policies[0].limits[0].algorithm",
      "p.yaml:7:37 policies[0].limits[1].windows[1]",
      "p.yaml:9:3 default.on_failure",
      "p.yaml:11:23 subjects[0].tier",
    ]);
  });

  it("have no file if none was named", () => {
    expect(problemsIn(() => parsePolicyText("policies: 1"))[0]?.place).toEqual({ line: 1, column: 11 });
  });
});

describe("texts that are no policies", () => {
  it.each(["", "# only a comment\n", "---\n", "null", "   \n"])("are reported as empty: %j", (text) => {
    expect(findProblems(text)).toEqual([
      expect.stringMatching(/^p\.yaml:\d:\d \(root\): is empty; write a list of policies under the key policies/),
    ]);
  });

  it("report where their syntax is wrong", () => {
    expect(findProblems("policies:\n  - id: [a\n  - id: b\n")[0]).toMatch(/^p\.yaml:3:\d \(root\): cannot be read: /);
    expect(findProblems("policies:\n\t- id: a\n")[0]).toMatch(/^p\.yaml:2:1 \(root\): cannot be read: .*[Tt]ab/);
    expect(findProblems('{ "policies": [ }')[0]).toMatch(/^p\.yaml:1:\d+ \(root\): cannot be read: /);
  });

  it("report a duplicate key, and everything else", () => {
    const text = "policies:\n  - id: a\n    limits: [{ windows: 1/x }]\n    id: b\n";
    expect(findProblems(text)).toEqual([
      'p.yaml:3:25 policies[0].limits[0].windows: has an unknown unit, "x"; units are ms, s, m, h, d and w',
      "p.yaml:4:5 (root): has the key id twice in one object; write it once",
    ]);
    expect(findProblems('{ "policies": [], "policies": [] }')).toEqual([
      "p.yaml:1:19 (root): has the key policies twice in one object; write it once",
    ]);
  });

  it("report a duplicate key however it is quoted, and never other objects' keys", () => {
    expect(findProblems("policies: []\n'policies': []\n")).toEqual([
      "p.yaml:2:1 (root): has the key policies twice in one object; write it once",
    ]);
    const apart = "policies:\n  - { id: a, unlimited: true }\n  - { id: b, unlimited: true }\n";
    expect(findProblems(apart)).toEqual([]);
  });

  it.each([
    ["keys that are not known", (index: number) => `k${index}: 1`],
    ["the same key", () => "k: 1"],
    ["lines that are no YAML", () => ": : :"],
  ])("are read quickly, with tens of thousands of %s", (_what, lineOf) => {
    // Comparing each line with all before it would take minutes.
    const text = Array.from({ length: 60_000 }, (_, index) => lineOf(index)).join("\n");
    expect(findProblems(text).length).toBeGreaterThan(0);
  });

  it("are refused when they are many", () => {
    expect(findProblems("policies: []\n---\npolicies: []\n")).toHaveLength(1);
  });

  it("are refused when they are too long", () => {
    const [problem] = findProblems(`policies: []\n#${" ".repeat(4 * 1024 * 1024)}`);
    expect(problem).toMatch(/is \d+ characters long; at most 4194304 are read, so split it/);
  });

  it("are refused when their aliases multiply", () => {
    const tens = (anchor: string, of: string) => `${anchor}: &${anchor} [${Array(10).fill(of).join(", ")}]\n`;
    const bomb = tens("a", "x") + tens("b", "*a") + tens("c", "*b") + tens("d", "*c") + tens("policies", "*d");
    expect(findProblems(bomb)).toEqual([
      expect.stringMatching(/^p.yaml:\d+:\d+ \(root\): has aliases that add more than 100000 values to the text/),
    ]);
  });

  it.each([
    ["repeated merge keys", (n: number) => `  <<: *m\n`.repeat(n)],
    ["merge keys of many maps", (n: number) => "- <<: *m\n".repeat(n)],
    ["a list of merged maps", (n: number) => `  <<: [${"*m, ".repeat(n)}]\n`],
    ["a list of aliases", (n: number) => `  k: [${"*m, ".repeat(n)}]\n`],
    [
      "maps merged into each other",
      (n: number) => Array.from({ length: n }, (_, i) => `  k${i}: &m${i + 1} { <<: *m${i} }\n`).join(""),
    ],
  ])("are refused when %s multiply, by line and limit, before they take memory", (_, linesOf) => {
    const keys = Array.from({ length: 5_000 }, (_, i) => `key${i}: 1`).join(", ");
    const text = `m: &m { ${keys} }\nm0: &m0 { ${keys} }\npolicies:\n${linesOf(999)}`;
    const before = process.memoryUsage().heapUsed;
    const problems = findProblems(text);
    expect(problems).toEqual([expect.stringMatching(/^p.yaml:\d+:\d+ .*add more than 100000 values to the text/)]);
    expect(Number(/^p.yaml:(\d+)/.exec(problems[0]!)?.[1])).toBeGreaterThan(3);
    // Unbounded, the worst of these came to 620 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(300 * 2 ** 20);
  });

  it("may use an anchor thousands of times, as long as what that adds is bounded", () => {
    const limit = "&l { by: [user], windows: [5/s] }";
    const policies = Array.from({ length: 3_000 }, (_, i) => `  - { id: p${i}, limits: [*l], on_failure: open }\n`);
    const text = `policies:\n  - { id: first, limits: [${limit}], on_failure: open }\n${policies.join("")}`;
    expect(parsePolicyText(text).policySet.policies).toHaveLength(3_001);
  });

  it("report an anchor that is not set, a merge of a non-object, and an invalid key", () => {
    expect(findProblems("policies: *gone")).toEqual([
      expect.stringContaining("uses the anchor gone, which is not set"),
    ]);
    expect(findProblems("policies: []\n<<: 5")).toEqual([
      expect.stringMatching(/^p.yaml:2:5 .*merges \(<<\) what is not an object/),
    ]);
    expect(findProblems("? [a]\n: 1")).toEqual([expect.stringContaining("has a list or an object as a key")]);
  });

  it("are refused when they are nested too deeply", () => {
    for (const text of ["[".repeat(50_000), `${"[".repeat(20_000)}${"]".repeat(20_000)}`, "- ".repeat(20_000)])
      expect(findProblems(text)).toEqual([expect.stringContaining("is nested too deeply to be read")]);
  });

  it("have problems with places, never another error", () => {
    const piece = fc.constantFrom(
      "policies:",
      "\n",
      "  ",
      "- ",
      "id: p",
      "{",
      "}",
      "[",
      "]",
      ":",
      "&a ",
      "*a",
      "!!x ",
      "'",
      "|\n",
      "windows: 1/s",
      "domains:",
      "rate_limits:",
      "#",
      "? ",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(piece).map((pieces) => pieces.join("")),
        ),
        (text) => {
          for (const { place } of problemsIn(() => parsePolicyText(text))) {
            expect(place?.line).toBeGreaterThanOrEqual(1);
            expect(place?.column).toBeGreaterThanOrEqual(1);
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("do not set prototypes", () => {
    expect(findPlaces("policies: []\n__proto__: { polluted: true }\n")).toEqual(["2:1 __proto__"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("parsePolicyFiles", () => {
  const policy = (id: string, more = "") =>
    `{ id: ${id}, on_failure: open, limits: [{ by: user, windows: 10/s }]${more} }`;

  it("puts files together, which may refer to each other", () => {
    const { policySet, warnings, dialects } = parsePolicyFiles([
      { file: "a.yaml", text: `policies: [${policy("new", ", replaces: old")}]\ndefault: none\n` },
      { file: "b.yaml", text: `policies: [${policy("old")}]` },
      { file: "c.yaml", text: "subjects: [{ user: u1, limits: [{ policy: old, windows: 5/s }] }]" },
      {
        file: "d.json",
        text: '{ "domains": [{ "domain": "d", "prefix": "p", "rate": { "capacity": 5, "leak_rate_per_second": 1 } }] }',
      },
    ]);
    expect(policySet.policies.map(({ id }) => id)).toEqual(["new", "old", "d/p"]);
    expect(policySet.fallback).toBeUndefined();
    expect(policySet.subjects).toHaveLength(1);
    expect(dialects).toEqual(["sluice", "sluice", "sluice", "domains"]);
    expect(warnings.map(({ place }) => place?.file)).toEqual(["d.json"]);
  });

  it("reports every problem of every file, and names both files of a clash", () => {
    const problems = problemsIn(() =>
      parsePolicyFiles([
        { file: "a.yaml", text: `policies:\n  - ${policy("p")}\ndefault: none\nsubjects: [{ user: u1, tier: t }]` },
        { file: "b.yaml", text: `policies:\n  - ${policy("q")}\n  - ${policy("p")}\ndefault: none\n` },
        { file: "c.yaml", text: "policies: [" },
        { file: "d.yaml", text: "subjects: [{ user: u1, tier: t }]" },
      ]),
    );
    expect(problems.map(renderProblem)).toEqual([
      "b.yaml:3:11 policies[1].id: is p, as is policies[0].id in a.yaml; every policy has its own id",
      "b.yaml:4:10 default: is also written in a.yaml; write it once",
      expect.stringMatching(/^c\.yaml:1:\d+ \(root\): cannot be read: /),
      "d.yaml:1:12 subjects[0]: is user u1, as is subjects[0] in a.yaml; write one entry for both",
    ]);
  });
});
