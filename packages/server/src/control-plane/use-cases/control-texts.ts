import type { Problem } from "sluice";
import { isAboutKey } from "sluice/policy-text";
import type { TextControl } from "../control-plane.ts";
import { placeProblems, readYaml } from "../documents/read-yaml.ts";
import { actorKey } from "./actor-key.ts";
import type { ControlContext } from "./control-context.ts";
import { isShortText } from "./is-short-text.ts";

export function createTextControl({ thread }: ControlContext): TextControl {
  return {
    readYaml: async (actor, text) =>
      isShortText(text) ? readYaml({ text }) : thread.run("readYaml", { text }, actorKey(actor)),
    async place(actor, text, problems): Promise<readonly Problem[]> {
      if (problems.length === 0) return problems;
      const unplaced = problems.map((problem) => ({ problem, aboutKey: isAboutKey(problem) }));
      const input = { text, unplaced };
      return isShortText(text) ? placeProblems(input) : thread.run("placeProblems", input, actorKey(actor));
    },
  };
}
