import { createHash } from "node:crypto";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseTokens } from "@sluice/protocol/tokens";
import { renderProblem, SluiceError } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../../settings/parse-settings.ts";
import { createRecordingLog } from "../../testing/recording-log.ts";
import { demand } from "./access.ts";
import { type CreateAccessOptions, createAccess, type RunningAccess } from "./create-access.ts";
import { type Permission, permissions, roles } from "./roles.ts";

let folder: string;
let file: string;
let access: RunningAccess | undefined;
let logged: { level: string; fields: Readonly<Record<string, unknown>>; message: string }[];
let nowMs: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-access-"));
  file = join(folder, "tokens.yaml");
  logged = [];
  nowMs = Date.parse("2026-01-01T00:00:00Z");
});

afterEach(async () => {
  access?.close();
  access = undefined;
  await rm(folder, { recursive: true, force: true });
});

const log = createRecordingLog((line) => logged.push(line));

const hashToken = (token: string): string => createHash("sha256").update(token).digest("hex");
const entry = (name: string, role: string, more = ""): string =>
  `  - { name: ${name}, role: ${role}, sha256: "${hashToken(`token of ${name}`)}"${more} }\n`;

async function save(text: string): Promise<void> {
  await writeFile(`${file}.next`, text);
  await rename(`${file}.next`, file);
}

async function open(text: string, options: CreateAccessOptions = {}): Promise<RunningAccess> {
  await save(text);
  const reading = parseSettings({}, { tokens: file });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  access = await createAccess(reading.settings, log, { pollMs: 10, nowMs: () => nowMs, ...options });
  return access;
}

function whyRefused(token: string | undefined): string {
  try {
    return `let in as ${access?.identify(token).name}`;
  } catch (error) {
    return error instanceof SluiceError ? `${error.code}: ${error.message}` : String(error);
  }
}

describe("access by tokens", () => {
  it("identifies callers by their tokens, and each has the permissions of its role", async () => {
    const { identify } = await open(
      `tokens:\n${roles.map((role) => entry(role, role, role === "editor" ? ", team: web" : "")).join("")}`,
    );
    const may: Record<string, Permission[]> = {};
    for (const role of roles) {
      const caller = identify(`token of ${role}`);
      expect(caller.name).toBe(role);
      may[role] = permissions.filter((permission) => {
        try {
          demand(caller, permission);
          return true;
        } catch (error) {
          expect(error).toMatchObject({ code: "permission_denied" });
          return false;
        }
      });
    }
    expect(may).toEqual({
      check: ["check", "credit"],
      viewer: ["read"],
      editor: ["read", "simulate", "edit"],
      operator: ["check", "credit", "read", "simulate", "operate"],
      admin: ["check", "credit", "read", "simulate", "edit", "operate", "administer"],
    });
    expect(identify("token of editor")).toMatchObject({ role: "editor", team: "web" });
  });

  it("requires the team of an editor, and of no other role", async () => {
    const file = `tokens:\n${entry("a", "editor")}${entry("b", "viewer", ", team: web")}`;
    await expect(open(file)).rejects.toMatchObject({
      problems: [{ path: ["tokens", 0, "team"] }, { path: ["tokens", 1, "team"] }],
    });
  });

  it("knows tokens of the policy store as well as those of the file, as they are now", async () => {
    const { identify, useTokens } = await open(`tokens:\n${entry("a", "check")}`);
    const stored = {
      id: "t1",
      name: "b",
      role: "admin",
      sha256: hashToken("token of b"),
      expiresMs: nowMs + 1,
    } as const;
    useTokens([stored]);
    expect(identify("token of b")).toMatchObject({ name: "b", role: "admin", tokenId: "t1" });
    expect(identify("token of a").name).toBe("a");
    nowMs += 1;
    expect(whyRefused("token of b")).toMatch(/expired/);
    useTokens([]);
    expect(whyRefused("token of b")).toBe("unauthenticated: this token is not known here");
  });

  it("lets callers be anonymous if there is no file, and still distinguishes known tokens", async () => {
    const reading = parseSettings({}, {});
    if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
    access = await createAccess(reading.settings, log);
    expect(whyRefused("anything")).toBe("let in as anonymous");
    access.useTokens([{ name: "b", role: "admin", sha256: hashToken("token of b"), expiresMs: undefined }]);
    expect(whyRefused(undefined)).toBe("let in as anonymous");
    expect(whyRefused("token of b")).toBe("let in as b");
    expect(whyRefused("anything")).toBe("unauthenticated: this token is not known here");
  });

  it("refuses all other tokens, counts them, and logs that once without what they sent", async () => {
    let refused = 0;
    await open(`tokens:\n${entry("a", "check")}`, {
      onRefused: () => {
        refused += 1;
      },
    });
    expect(whyRefused(undefined)).toMatch(/^unauthenticated: .*send Authorization: Bearer/);
    const strangers = ["", "guess-hunter2", hashToken("token of a"), "token of a ", "x".repeat(100_000)];
    for (const token of strangers) expect(whyRefused(token)).toBe("unauthenticated: this token is not known here");
    expect(refused).toBe(strangers.length);
    expect(logged.filter(({ level }) => level === "warn")).toHaveLength(1);
    expect(JSON.stringify(logged)).not.toContain("hunter2");
  });

  it("refuses a token from the moment that it expires", async () => {
    await open(`tokens:\n${entry("a", "check", ", expires: 2026-01-02")}`);
    expect(whyRefused("token of a")).toBe("let in as a");
    nowMs = Date.parse("2026-01-01T23:59:59.999Z");
    expect(whyRefused("token of a")).toBe("let in as a");
    nowMs += 1;
    expect(whyRefused("token of a")).toMatch(/^unauthenticated: .*expired/);
  });

  it("follows the file: removed tokens are refused, added ones accepted", async () => {
    await open(`tokens:\n${entry("a", "check")}`);
    await save(`tokens:\n${entry("b", "check")}`);
    await expect.poll(() => whyRefused("token of b"), { timeout: 30_000 }).toBe("let in as b");
    expect(whyRefused("token of a")).toContain("unauthenticated");
  });

  it("keeps the last good tokens while the file cannot be used, and logs that once", async () => {
    await open(`tokens:\n${entry("a", "check")}`);
    await save("tokens:\n  - name: a\n");
    const errors = (): unknown[] => logged.filter(({ level }) => level === "error");
    await expect.poll(() => errors().length, { timeout: 30_000 }).toBe(1);
    expect(whyRefused("token of a")).toBe("let in as a");
    await rm(file);
    await expect.poll(() => errors().length, { timeout: 30_000 }).toBe(2);
    expect(whyRefused("token of a")).toBe("let in as a");
    await save(`tokens:\n${entry("c", "check")}`);
    await expect.poll(() => whyRefused("token of c"), { timeout: 30_000 }).toBe("let in as c");
  });

  it("lets no caller in after the last token was removed", async () => {
    await open(`tokens:\n${entry("a", "check")}`);
    await save("tokens: []\n");
    await expect.poll(() => whyRefused("token of a"), { timeout: 30_000 }).toContain("unauthenticated");
    expect(logged.map(({ message }) => message)).toContain("the token file has no tokens, so every call is refused");
  });

  it("reads the file at once on request", async () => {
    const running = await open(`tokens:\n${entry("a", "check")}`, { pollMs: 3_600_000 });
    await save(`tokens:\n${entry("b", "check")}`);
    await running.reload();
    expect(whyRefused("token of b")).toBe("let in as b");
  });

  it("does not start with a file that is not there", async () => {
    const reading = parseSettings({}, { tokens: join(folder, "nowhere.yaml") });
    if (reading.kind === "problems") throw new Error("settings");
    await expect(createAccess(reading.settings, log)).rejects.toThrow(/SLUICE_TOKENS \(--tokens\): .*does not exist/);
  });

  it("without a file lets every caller check and read, and none change anything", async () => {
    const reading = parseSettings({}, {});
    if (reading.kind === "problems") throw new Error("settings");
    access = await createAccess(reading.settings, log);
    const caller = access.identify(undefined);
    expect(permissions.filter((permission) => caller.may.has(permission))).toEqual(["check", "read"]);
    expect(() => demand(caller, "operate")).toThrow(/start it with --tokens FILE/);
    expect(() => demand(caller, "credit")).toThrow(/token of role check/);
  });
});

describe("a file of tokens", () => {
  function findProblems(text: string): string[] {
    try {
      parseTokens(text, "t.yaml");
      return [];
    } catch (error) {
      return (error as SluiceError).problems.map(renderProblem);
    }
  }

  it("is YAML or JSON", () => {
    const sha256 = hashToken("x");
    const expected = [{ name: "a", role: "check", sha256, expiresMs: Date.parse("2027-01-31T12:00:00Z") }];
    const token = { name: "a", role: "check", sha256: sha256.toUpperCase(), expires: "2027-01-31T13:00:00+01:00" };
    expect(parseTokens(JSON.stringify({ tokens: [token] }), "t")).toEqual(expected);
    const yaml = `# comment\ntokens:\n- name: a\n  role: check\n  sha256: ${sha256}\n  expires: 2027-01-31T12:00:00Z\n`;
    expect(parseTokens(yaml, "t")).toEqual(expected);
  });

  it("reports every problem with its place, and never what may be a token", () => {
    const problems = findProblems(
      [
        "tokens:",
        "  - { name: a, role: chekc, sha256: hunter2 }",
        `  - { name: a, role: check, token: hunter2, sha256: ${hashToken("y")} }`,
        `  - { name: "a b", role: check, sha256: ${hashToken("z")}, expires: soon }`,
        "other: 1",
      ].join("\n"),
    );
    expect(problems.join("\n")).not.toContain("hunter2");
    const at = (place: string, words: string): unknown =>
      expect.stringMatching(new RegExp(`t\\.yaml:${place}.*${words}`));
    expect(problems).toEqual(
      expect.arrayContaining([
        at("2:\\d+", "did you mean check"),
        at("2:\\d+", "SHA-256 .*sluice token make"),
        at("3:\\d+", "must not be here.*sluice token make"),
        at("4:\\d+", "letters, digits"),
        at("4:\\d+", "must be a date"),
        at("5:\\d+", "other"),
      ]),
    );
    expect(problems).toHaveLength(6);
  });

  it.each(["2027-02-31", "2027-02-29T10:00:00Z", "2027-13-01", "2027-01-31T25:00:00Z", "2027-01-31T12:00:00"])(
    "has no token that ends at %s, a moment that does not come",
    (expires) => {
      const text = `tokens: [{ name: a, role: check, sha256: ${hashToken("1")}, expires: "${expires}" }]`;
      expect(findProblems(text)).toEqual([expect.stringMatching(/tokens\[0\]\.expires.*must be a date/)]);
    },
  );

  it("names each token once, and has each once", () => {
    const [one, two] = [hashToken("1"), hashToken("2")];
    const entries = [
      `{ name: a, role: check, sha256: ${one} }`,
      `{ name: a, role: check, sha256: ${two} }`,
      `{ name: b, role: check, sha256: ${one} }`,
    ];
    expect(findProblems(`tokens: [${entries.join(", ")}]`)).toEqual([
      expect.stringContaining("tokens[1].name"),
      expect.stringContaining("tokens[2].sha256"),
    ]);
  });

  it.each(["", "[", "tokens: {}", "tokens: &a [*a]", "- a", "tokens: []\ntokens: []", "\u0000"])(
    "is refused when it is %j",
    (text) => {
      expect(findProblems(text).length).toBeGreaterThan(0);
    },
  );
});
