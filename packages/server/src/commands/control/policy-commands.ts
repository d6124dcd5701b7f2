import { type Command, Option } from "commander";
import {
  changeCommand,
  controlCommand,
  type RunOnControlPlane,
  type WaitingHelp,
  withExamples,
} from "./control-command.ts";
import type { ControlOptions } from "./control-session.ts";
import { parseSteps } from "./parse-steps.ts";
import { type ApplyOptions, policyApply } from "./policy-apply.ts";
import { type PolicyDeleteOptions, type PolicyRevertOptions, policyDelete, policyRevert } from "./policy-change.ts";
import { type PolicyDiffOptions, policyDiff } from "./policy-diff.ts";
import {
  type PolicyGetOptions,
  type PolicyHistoryOptions,
  type PolicyListOptions,
  policyExport,
  policyGet,
  policyHistory,
  policyList,
} from "./policy-read.ts";
import { type PolicyRolloutOptions, policyRollout } from "./policy-rollout.ts";

/** `sluice policy …`, as far as it asks a control plane. */
export function addPolicyCommands(policy: Command, run: RunOnControlPlane): void {
  const apply = changeCommand(policy, "apply <path>", "Make the policy store hold what a policy file says.", {
    waiting: forNodesOrRollout,
  }).option("--replace", "delete policies and subjects that are not in the file");
  withExamples(
    withRolloutOptions(apply),
    `PATH is a policy file, a folder of them, or - for stdin. Shows what would change, asks, and refuses to overwrite
what another command changed in between. Policies that the file does not name stay, unless --replace.
Several policies change together or not at all; with --rollout, and for editors, one by one.`,
    "sluice policy apply policies.yaml",
    "sluice policy apply policies.yaml --replace --dry-run",
    'sluice policy apply login.yaml --rollout "1%:10m,10%:10m,100%" --why "fewer guesses" --yes --wait',
  ).action((path: string, options: ApplyOptions) => run(options, (session) => policyApply(path, options, session)));

  withExamples(
    controlCommand(policy, "diff <file-or-id>", "Compare a policy file with the policy store, or versions of a policy.")
      .option("--from <version>", "of a policy: from this version (default: the one before)")
      .option("--to <version>", "of a policy: to this version (default: the current one)")
      .option("--replace", "of a file: policies that are not in it count as different"),
    "Exit code 1 where they differ.",
    "sluice policy diff policies.yaml",
    "sluice policy diff login --from 3 --to 5",
  ).action((what: string, options: PolicyDiffOptions) => run(options, (session) => policyDiff(what, options, session)));

  withExamples(
    controlCommand(policy, "get <id>", "Print a policy as a policy file, ready to be edited and applied.")
      .option("--version <number>", "as it was at this version")
      .option("-o, --output <form>", "yaml or json (default yaml)"),
    "",
    "sluice policy get login > login.yaml",
    "sluice policy get login --version 3 -o json",
  ).action((id: string, options: PolicyGetOptions) => run(options, (session) => policyGet(id, options, session)));

  withExamples(
    controlCommand(policy, "list", "List the policies in the policy store.").option(
      "--owner <team>",
      "only of this team",
    ),
    "",
    "sluice policy list --owner identity",
  ).action((options: PolicyListOptions) => run(options, (session) => policyList(options, session)));

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

  withExamples(
    withRolloutOptions(
      changeCommand(policy, "revert <id>", "Make a new version with what an earlier one said.", {
        waiting: forNodesOrRollout,
      }).requiredOption("--to <version>", "which one; required (sluice policy history lists them)"),
    ),
    "Also brings back a deleted policy. Exit code 1 if the policy says the same already.",
    'sluice policy revert login --to 3 --why "too strict"',
  ).action((id: string, options: PolicyRevertOptions) => run(options, (session) => policyRevert(id, options, session)));

  withExamples(
    changeCommand(policy, "delete <id>", "Delete a policy; its versions stay, and revert brings it back."),
    "",
    'sluice policy delete login --why "moved to the gateway"',
  ).action((id: string, options: PolicyDeleteOptions) => run(options, (session) => policyDelete(id, options, session)));

  withExamples(
    changeCommand(policy, "rollout [id]", "List rollouts, show one with its metrics, steer it, or wait for its end.", {
      waiting: {
        wait: "wait until it has ended and every node knows",
        timeout: "how long to wait at most, such as 1h; implies --wait (default: until it has ended)",
      },
    })
      .option("--all", "list those that have ended too")
      .option("--advance", "take the next step")
      .option("--pause", "stay at this step")
      .option("--resume", "continue a paused rollout")
      .option("--finish", "apply it to all subjects, now")
      .option("--roll-back", "return all subjects to the old version"),
    `ID is a policy's id, or a rollout's. Without one, lists the rollouts that are underway. --wait shows its progress; the exit code
is 1 if it was rolled back or cancelled, and 6 after --timeout. --why, --dry-run and --yes go with one of --advance, --pause,
--resume, --finish and --roll-back; the exit code is 1 if the rollout is in no state for that.`,
    "sluice policy rollout",
    "sluice policy rollout login --wait --timeout 1h",
    'sluice policy rollout login --roll-back --why "support is flooded" --yes',
  ).action((id: string | undefined, options: PolicyRolloutOptions) =>
    run(options, (session) => policyRollout(id, options, session)),
  );

  withExamples(
    controlCommand(policy, "export", "Print the whole configuration as a policy file, for Git."),
    "Apply it again with sluice policy apply --replace.",
    "sluice policy export > policies.yaml",
  ).action((options: ControlOptions) => run(options, policyExport));
}

const forNodesOrRollout: WaitingHelp = {
  wait: "wait until every node decides by it; with --rollout, until the rollout has ended",
  timeout: "how long to wait at most, such as 30s; implies --wait (default 1m; with --rollout none)",
};

function withRolloutOptions(command: Command): Command {
  return command
    .addOption(
      // Read at once: it takes the next word, which may be the path that was meant for the command.
      new Option("--rollout [steps]", "roll out in steps (default 1%:10m,10%:10m,100%)").argParser((text: string) => {
        parseSteps(text, true);
        return text;
      }),
    )
    .option("--by <dimension>", "the dimension whose values are split, such as user")
    .option("--shadow", "the old version decides, and the decisions of the new one are counted")
    .option("--start <moment>", "not before then: a date, or a duration from now")
    .option("--observe <duration>", "how long to watch the old version first: at least 5m, or 0 (default 10m)")
    .option("--expect-more-denials", "more denials are intended, and do not roll it back");
}
