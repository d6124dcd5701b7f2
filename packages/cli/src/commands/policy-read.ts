import type { JsonObject, PolicyBody, RolloutState, VersionBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { defaultPolicyId, printable } from "sluice/internal";
import { parseYamlDocument, renderYaml } from "sluice/policy-text";
import { parseCount, parseVersion } from "../arguments/parse-version.ts";
import { controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { renderTable } from "../terminal/render-table.ts";
import { renderInstant, renderMoment } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

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
      ? await api.policies.get(id)
      : await api.policies.version(id, parseVersion("--version", options.version));
  if (json) {
    writeJson(session, found);
    return 0;
  }
  const { document } = found;
  if (document === undefined)
    throw new CommandError(`version ${found.version} deleted policy ${id}; see sluice policy history ${id}`, 1);
  const file = renderPolicyFile(id, document, output);
  terminal.stdout.write(output === "json" ? file : `${renderHead(found, id)}${file}`);
  return 0;
}

/** A policy file with one policy. */
function renderPolicyFile(id: string, document: JsonObject, form: "yaml" | "json"): string {
  const { id: _, ...withoutId } = document;
  const file = id === defaultPolicyId ? { default: withoutId } : { policies: [{ id, ...document }] };
  return form === "json" ? `${JSON.stringify(file, undefined, 2)}\n` : renderYaml(file);
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
  const policies = await api.policies.list({ owner: options.owner }).toArray();
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
      renderState(policy),
      renderMoment(policy.changed_ms, nowMs),
      policy.author,
      policy.why,
    ]),
    width,
  );
}

function renderState({ rollout, disabled, overridden_by, document }: PolicyBody): string {
  if (disabled !== undefined) return `disabled (${disabled.mode})`;
  if (overridden_by === "file") return "a file wins";
  if (rollout !== undefined) return `${rollout.percent} % have ${rollout.to_version}`;
  return renderMode(document);
}

function renderMode({ mode }: JsonObject): string {
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
  const most = limit === undefined ? usualHistory : parseCount("--limit", limit, mostHistory);
  const versions = await api.policies.versions(id).toArray(most);
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
      renderAction(version),
      version.why,
    ]),
    width,
  );
}

function renderAction({ document, revert_of, rollout }: VersionBody): string {
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
  const text = await session.api.configuration.export();
  if (session.json) writeJson(session, parseYamlDocument(text, undefined).contents);
  else session.terminal.stdout.write(text);
  return 0;
}

/** `sluice policy get` */
export function addPolicyGet(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    controlCommand(policy, "get <id>", "Print a policy as a policy file, ready to be edited and applied.")
      .option("--version <number>", "as it was at this version")
      .option("-o, --output <form>", "yaml or json (default yaml)"),
    "",
    "sluice policy get login > login.yaml",
    "sluice policy get login --version 3 -o json",
  ).action((id: string, options: PolicyGetOptions) => run(options, (session) => policyGet(id, options, session)));
}

/** `sluice policy list` */
export function addPolicyList(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    controlCommand(policy, "list", "List the policies in the policy store.").option(
      "--owner <team>",
      "only of this team",
    ),
    "",
    "sluice policy list --owner identity",
  ).action((options: PolicyListOptions) => run(options, (session) => policyList(options, session)));
}

/** `sluice policy history` */
export function addPolicyHistory(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    controlCommand(policy, "history <id>", "List the versions of a policy, newest first: who, when, why.").option(
      "--limit <number>",
      "most versions (default 50)",
    ),
    "",
    "sluice policy history login",
  ).action((id: string, options: PolicyHistoryOptions) =>
    run(options, (session) => policyHistory(id, options, session)),
  );
}

/** `sluice policy export` */
export function addPolicyExport(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    controlCommand(policy, "export", "Print the whole configuration as a policy file, for Git."),
    "Apply it again with sluice policy apply --replace.",
    "sluice policy export > policies.yaml",
  ).action((options: ControlOptions) => run(options, policyExport));
}
