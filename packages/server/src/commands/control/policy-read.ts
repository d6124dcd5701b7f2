import type { JsonObject, PolicyBody, RolloutState, VersionBody } from "@sluice/protocol/admin";
import { printable } from "sluice";
import { parse } from "yaml";
import { CommandError, type ExitCode } from "../terminal.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import { parseCount, parseVersion } from "./parse-version.ts";
import { renderPolicyFile } from "./read-policy-documents.ts";
import { renderInstant, renderMoment } from "./render-moment.ts";
import { renderTable } from "./render-table.ts";
import { writeJson } from "./write-json.ts";

export interface PolicyGetOptions extends ControlOptions {
  readonly version?: string;
  readonly output?: string;
}

/** `sluice policy get`: a policy as a policy file, ready to be edited and applied. */
export async function policyGet(id: string, options: PolicyGetOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json } = session;
  const { output = "yaml" } = options;
  if (output !== "yaml" && output !== "json")
    throw new CommandError(`-o is ${JSON.stringify(output)}; it should be yaml or json`);
  const found =
    options.version === undefined
      ? await api.policy(id)
      : await api.version(id, parseVersion("--version", options.version));
  if (json) {
    writeJson(session, found);
    return 0;
  }
  const { document } = found;
  if (document === undefined)
    throw new CommandError(`version ${found.version} deleted policy ${id}; see sluice policy history ${id}`, 1);
  const file = renderPolicyFile(new Map([[id, document]]), output);
  terminal.stdout.write(output === "json" ? file : `${renderHead(found, id)}${file}`);
  return 0;
}

function renderHead(found: PolicyBody | VersionBody, id: string): string {
  const atMs = "changed_ms" in found ? found.changed_ms : found.at_ms;
  const why = found.why === "" ? "" : `: ${printable(found.why)}`;
  const head = [`# ${id}, version ${found.version}, by ${printable(found.author)} at ${renderInstant(atMs)}${why}`];
  if ("changed_ms" in found && found.rollout !== undefined)
    head.push(`# Version ${found.rollout.to_version} is on its way to ${found.rollout.percent} % of subjects.`);
  if ("overridden_by" in found && found.overridden_by === "file")
    head.push("# Not in force: a policy file of the server has the same policy, and wins.");
  return `${head.join("\n")}\n`;
}

export interface PolicyListOptions extends ControlOptions {
  readonly owner?: string;
}

/** `sluice policy list`: all policies in the store. */
export async function policyList(options: PolicyListOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  const policies = await api.policies(options.owner);
  if (json) writeJson(session, { policies });
  else if (policies.length === 0 && options.owner !== undefined)
    terminal.stdout.write(`Team ${printable(options.owner)} owns no policy. sluice policy list shows all of them.\n`);
  else terminal.stdout.write(renderPolicies(policies, nowMs(), width));
  return 0;
}

export function renderPolicies(policies: readonly PolicyBody[], nowMs: number, width: number | undefined): string {
  if (policies.length === 0) return "The policy store holds no policy. sluice policy apply FILE puts some there.\n";
  return renderTable(
    [
      { title: "policy" },
      { title: "version", align: "right" },
      { title: "owner" },
      { title: "state" },
      { title: "changed" },
      { title: "by" },
      { title: "why", flexible: true },
    ],
    policies.map((policy) => [
      policy.id,
      String(policy.version),
      policy.owner ?? "-",
      stateOf(policy),
      renderMoment(policy.changed_ms, nowMs),
      policy.author,
      policy.why,
    ]),
    width,
  );
}

function stateOf({ rollout, overridden_by, document }: PolicyBody): string {
  if (overridden_by === "file") return "a file wins";
  if (rollout !== undefined) return `${rollout.percent} % have ${rollout.to_version}`;
  return modeOf(document);
}

function modeOf({ mode }: JsonObject): string {
  return mode === "shadow" ? "shadow" : "in force";
}

export interface PolicyHistoryOptions extends ControlOptions {
  readonly limit?: string;
}

const usualHistory = 50;
const mostHistory = 100_000;

/** `sluice policy history`: every version of a policy, newest first. */
export async function policyHistory(
  id: string,
  { limit }: PolicyHistoryOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  const versions = await api.versions(
    id,
    limit === undefined ? usualHistory : parseCount("--limit", limit, mostHistory),
  );
  if (json) writeJson(session, { policy: id, versions });
  else terminal.stdout.write(renderHistory(versions, nowMs(), width));
  return 0;
}

export function renderHistory(versions: readonly VersionBody[], nowMs: number, width: number | undefined): string {
  return renderTable(
    [
      { title: "", align: "left" },
      { title: "version", align: "right" },
      { title: "changed" },
      { title: "by" },
      { title: "what" },
      { title: "why", flexible: true },
    ],
    versions.map((version) => [
      version.current ? "*" : "",
      String(version.version),
      renderMoment(version.at_ms, nowMs),
      version.author,
      whatOf(version),
      version.why,
    ]),
    width,
  );
}

function whatOf({ document, revert_of, rollout }: VersionBody): string {
  if (document === undefined) return "deleted";
  const made = revert_of === undefined ? "written" : `reverted to ${revert_of}`;
  if (rollout === undefined) return made;
  // A shadow that comes to its end puts nothing in force.
  const became = rollout.shadow && rollout.state === "done" ? "compared" : rolloutWords[rollout.state];
  return `${made}, ${became}${rollout.shadow ? " (shadow)" : ""}`;
}

/** What became of a version that went out by steps. */
const rolloutWords: Readonly<Record<RolloutState, string>> = {
  waiting: "rollout waits for its start",
  observing: "being rolled out",
  running: "being rolled out",
  paused: "rollout paused",
  done: "rolled out",
  rolled_back: "rolled back",
  cancelled: "rollout cancelled",
};

/** `sluice policy export`: the whole configuration as a policy file, for Git. */
export async function policyExport(session: ControlSession): Promise<ExitCode> {
  const text = await session.api.export();
  if (session.json) writeJson(session, parse(text));
  else session.terminal.stdout.write(text);
  return 0;
}
