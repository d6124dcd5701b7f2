import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { findForgeProblems } from "./forge-files.ts";
import { readSourceTree, repositoryRoot } from "./source-tree.ts";

const tree = readSourceTree();

/** The problems after one change in one file. */
function problemsWith(file: string, right: string, wrong: string): Promise<readonly string[]> {
  const text = tree.get(file)!;
  expect(text).toContain(right);
  return findForgeProblems(
    new Map([
      ["package.json", tree.get("package.json")!],
      ["scripts/try-start.mjs", ""],
      [file, text.replaceAll(right, wrong)],
    ]),
  );
}

const github = ".github/workflows/ci.yml";
const forgejo = ".forgejo/workflows/ci.yml";
const gitlab = ".gitlab-ci.yml";
const bug = ".github/ISSUE_TEMPLATE/bug.yml";

describe("the files that forges read", () => {
  it("are right, for GitHub and Gitea, GitLab and Forgejo", async () => {
    expect(await findForgeProblems(tree)).toEqual([]);
    for (const file of [github, forgejo, gitlab, bug, ".github/PULL_REQUEST_TEMPLATE.md"])
      expect([...tree.keys()]).toContain(file);
  });

  it.each([
    [github, "runs-on:", "run-on:", /unexpected key "run-on"/],
    [github, "matrix.node }}", "matrix.nod }}", /property "nod" is not defined/],
    [github, "checkout@v6.0.2", "checkout@v6", /not a full version/],
    [github, "contents: read", "contents: write", /permissions must be contents: read/],
    [github, "persist-credentials: false", "fetch-depth: 1", /leaves the token in the clone/],
    [github, "run: npm test", "run: npm run tests", /does not run npm test/],
    [github, "run: npm test", "run: npm run tests", /package\.json does not have/],
    [github, "[20, 22, 24]", "[22, 24]", /must run on Node 20, 22, 24/],
    [forgejo, "scripts/try-start.mjs", "scripts/start-it.mjs", /start-it\.mjs, which is missing/],
    [forgejo, "steps:", "step:", /unexpected key "step"/],
    [gitlab, "- npm test", "- npm run lint", /does not run npm test/],
    [gitlab, "interruptible", "interuptible", /GitLab does not know/],
    [gitlab, "-bookworm", "-alpine", /must run in node:VERSION-bookworm/],
    [bug, "type: input", "type: text", /text is no field/],
    [bug, "id: version", "id: logs", /same id/],
    [bug, "label: Version", "title: Version", /version has no text/],
  ])("are wrong in %s with %s as %s", async (file, right, wrong, problem) => {
    expect(await problemsWith(file, right, wrong)).toContainEqual(expect.stringMatching(problem));
  });
});

describe("scripts/try-start.mjs, which they run", () => {
  const run = (...args: readonly string[]): Promise<{ code: number | null; printed: string }> => {
    const script = path.join(repositoryRoot, "scripts/try-start.mjs");
    const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
      });
    }
    return new Promise((resolve) => child.once("close", (code) => resolve({ code, printed })));
  };

  it("passes if npm start serves, and fails if it does not", { timeout: 300_000 }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-try-start-"));
    try {
      const ports = ["--port", "0", "--admin-port", "0", "--grpc-port", "0"];
      const store = ["--store", `sqlite:${path.join(folder, "policies.db")}`, "--seed", "config/policies.yaml"];
      const served = await run(...ports, ...store);
      expect(served.printed).toMatch(/npm start serves\n$/);
      expect(served.code).toBe(0);
      const refused = await run(...ports, "--config", path.join(folder, "missing.yaml"));
      expect(refused.printed).toMatch(/npm start ended with \d/);
      expect(refused.code).toBe(1);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
