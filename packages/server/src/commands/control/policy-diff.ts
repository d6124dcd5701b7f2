import { stat } from "node:fs/promises";
import { printable } from "sluice";
import { parse } from "yaml";
import { CommandError, type ExitCode } from "../terminal.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import { changedLines } from "./diff-lines.ts";
import { parseVersion } from "./parse-version.ts";
import { planPolicies } from "./plan-policies.ts";
import { planSubjects, renderSubjectPlan } from "./plan-subjects.ts";
import { readPolicyDocuments } from "./read-policy-documents.ts";
import { renderDiff, renderPlan } from "./render-plan.ts";
import { writeJson } from "./write-json.ts";

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
  const { api, terminal, json, paint, width, nowMs } = session;
  const documents = await readPolicyDocuments(path, terminal);
  const plan = planPolicies(documents.policies, await api.policies(), replace);
  // The store is asked for its subjects only where they matter.
  const comparesSubjects = documents.subjects.length > 0 || replace;
  const stored = comparesSubjects ? readStoredSubjects(await api.export()) : [];
  const subjects = planSubjects(documents.subjects, stored, replace, nowMs());
  const sameSubjects = Object.values(subjects).every((names: readonly string[]) => names.length === 0);
  const same = sameSubjects && plan.every(({ action }) => action === "unchanged");
  if (json)
    writeJson(session, {
      same,
      subjects,
      plan: plan.map(({ id, action, version, lines }) => ({
        policy: id,
        action,
        version,
        diff: changedLines(lines),
      })),
    });
  else {
    terminal.stdout.write(renderPlan(plan, paint, width));
    if (comparesSubjects) terminal.stdout.write(`${printable(renderSubjectPlan(subjects))}\n`);
  }
  return same ? 0 : 1;
}

/** Those in an export, which is a policy file. */
function readStoredSubjects(text: string): readonly unknown[] {
  const { subjects } = (parse(text) ?? {}) as { readonly subjects?: unknown };
  return Array.isArray(subjects) ? subjects : [];
}

async function diffVersions(id: string, { from, to }: PolicyDiffOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, paint } = session;
  const diff = await api.diff(
    id,
    from === undefined ? undefined : parseVersion("--from", from),
    to === undefined ? undefined : parseVersion("--to", to),
  );
  const same = diff.changes.length === 0;
  if (json) writeJson(session, { same, ...diff });
  else {
    terminal.stdout.write(`${paint.strong(printable(diff.policy))}, version ${diff.from} → ${diff.to}\n`);
    terminal.stdout.write(same ? "They say the same.\n" : renderDiff(diff.text.split("\n").slice(0, -1), paint));
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
