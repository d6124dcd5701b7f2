import { type Command, Option } from "commander";
import { parseSteps } from "../arguments/parse-steps.ts";
import type { WaitingHelp } from "./control-command.ts";

/** What `--wait` means to a command that may begin a rollout. */
export const forNodesOrRollout: WaitingHelp = {
  wait: "wait until every node decides by it; with --rollout, until the rollout has ended",
  timeout: "how long to wait at most, such as 30s; implies --wait (default 1m; with --rollout none)",
};

/** How a new version is rolled out. */
export function withRolloutOptions(command: Command): Command {
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
