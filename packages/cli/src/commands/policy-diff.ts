import { stat } from "node:fs/promises";
import type { CountedSubjectsBody, ImportPlanBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { parseVersion } from "../arguments/parse-version.ts";
import { askPlan } from "../control/ask-plan.ts";
import { controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { changedLines, splitDiff } from "../terminal/diff-lines.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { renderDiff, renderPlan } from "./render-plan.ts";

export interface PolicyDiffOptions extends ControlOptions {
  readonly from?: string;
  readonly to?: string;
  /** Of a file: whether policies that are not in it count as different. */
  readonly replace?: boolean;
}

/** `sluice policy diff`: a file against the policy store, or two versions of a policy. 1 where they differ. */
export async function policyDiff(what: string, options: PolicyDiffOptions, session: ControlSession): Promise<ExitCode> {
  const versions = options.from !== undefined ? "--from" : options.to !== undefined ? "--to" : undefined;
  if (versions !== undefined && looksLikePath(what))
    throw new CommandError(
      `${versions} is for versions of a policy, and ${what} is a file; leave it out, or name a policy by its id`,
    );
  if (versions === undefined && (await isPath(what))) return diffFile(what, options.replace === true, session);
  if (options.replace === true) throw new CommandError(`--replace is for files, and there is no file ${what}`);
  return diffVersions(what, options, session);
}

async function diffFile(path: string, replace: boolean, session: ControlSession): Promise<ExitCode> {
  const { terminal, json, paint, width } = session;
  const { plan } = await askPlan(path, replace ? "replace" : "merge", session);
  const { policies, subjects } = plan;
  const { created, changed, deleted } = subjects;
  const sameSubjects = created.count + changed.count + deleted.count === 0;
  const same = sameSubjects && policies.every(({ action }) => action === "unchanged");
  if (json)
    writeJson(session, {
      same,
      subjects: {
        create: renderNames(created),
        change: renderNames(changed),
        delete: renderNames(deleted),
        counts: { create: created.count, change: changed.count, delete: deleted.count },
      },
      plan: policies.map(({ policy, action, version, diff }) => ({
        policy,
        action,
        version,
        diff: changedLines(splitDiff(diff)),
      })),
    });
  else {
    terminal.stdout.write(renderPlan(policies, paint, width));
    if (plan.subjects_in_files > 0 || replace) terminal.stdout.write(`${printable(renderSubjects(subjects))}\n`);
  }
  return same ? 0 : 1;
}

/** The control plane names the first 100. */
function renderNames({ first }: CountedSubjectsBody): readonly string[] {
  return first.map(({ dimension, value }) => `${dimension}=${value}`);
}

const mostNamed = 20;

function renderSubjects({ created, changed, deleted }: ImportPlanBody["subjects"]): string {
  const parts = Object.entries({ create: created, change: changed, delete: deleted }).map(([action, counted]) => {
    const { count } = counted;
    const names = renderNames(counted).slice(0, mostNamed);
    const more = count > names.length ? ` and ${count - names.length} more` : "";
    return `${count} to ${action}${count === 0 ? "" : ` (${names.join(", ")}${more})`}`;
  });
  return `subjects: ${parts.join(", ")}`;
}

async function diffVersions(id: string, { from, to }: PolicyDiffOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, paint } = session;
  const diff = await api.policies.diff(id, {
    from: from === undefined ? undefined : parseVersion("--from", from),
    to: to === undefined ? undefined : parseVersion("--to", to),
  });
  const same = diff.changes.length === 0;
  if (json) writeJson(session, { same, ...diff });
  else {
    terminal.stdout.write(`${paint.strong(printable(diff.policy))}, version ${diff.from} → ${diff.to}\n`);
    terminal.stdout.write(same ? "They say the same.\n" : renderDiff(splitDiff(diff.text), paint));
  }
  return same ? 0 : 1;
}

function looksLikePath(what: string): boolean {
  return what === "-" || what.includes("/") || /\.(ya?ml|json)$/i.test(what);
}

/** Whether a word names a file or a folder, rather than a policy. What looks like a file is one, also if it is not there. */
async function isPath(what: string): Promise<boolean> {
  if (looksLikePath(what)) return true;
  return stat(what).then(
    () => true,
    () => false,
  );
}

/** `sluice policy diff` */
export function addPolicyDiff(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    controlCommand(policy, "diff <file-or-id>", "Compare a policy file with the policy store, or versions of a policy.")
      .option("--from <version>", "of a policy: from this version (default: the one before)")
      .option("--to <version>", "of a policy: to this version (default: the current one)")
      .option("--replace", "of a file: policies that are not in it count as different"),
    "Exit code 1 where they differ.",
    "sluice policy diff policies.yaml",
    "sluice policy diff login --from 3 --to 5",
  ).action((what: string, options: PolicyDiffOptions) => run(options, (session) => policyDiff(what, options, session)));
}
