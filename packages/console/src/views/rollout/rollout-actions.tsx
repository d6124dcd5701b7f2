import type { RolloutBody } from "@sluice/protocol/admin";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { type RolloutMove, rollouts } from "../../api/rollouts.ts";
import { Can } from "../../session/can.tsx";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { showDone } from "../../ui/toast.tsx";

interface Action {
  readonly label: string;
  readonly title: string;
  readonly what: (rollout: RolloutBody) => string;
  readonly done: string;
  /** The move that takes it back. */
  readonly undo?: RolloutMove;
  readonly danger?: boolean;
}

const actions: Readonly<Record<RolloutMove, Action>> = {
  advance: {
    label: "Advance",
    title: "Take the next step now?",
    what: ({ steps, step }) =>
      step + 1 >= steps.length
        ? "All subjects get the new version."
        : `${steps[step + 1]!.percent} % of subjects get the new version.`,
    done: "The rollout took its next step",
  },
  pause: {
    label: "Pause",
    title: "Pause the rollout?",
    what: ({ percent }) => `It stays at ${percent} % of subjects, and takes no step until it is resumed.`,
    done: "The rollout is paused",
    undo: "resume",
  },
  resume: {
    label: "Resume",
    title: "Resume the rollout?",
    what: () => "It goes on from the step that it is at.",
    done: "The rollout goes on",
    undo: "pause",
  },
  finish: {
    label: "Finish",
    title: "Apply the new version to all subjects?",
    what: ({ to_version }) => `Version ${to_version} decides for every subject, on every node. No comparison follows.`,
    done: "The new version applies to all subjects",
  },
  "roll-back": {
    label: "Roll back",
    title: "Roll back?",
    what: ({ from_version }) => `Every subject returns to version ${from_version}, on every node.`,
    done: "The old version applies to all subjects",
    danger: true,
  },
};

/** What an editor does with a rollout. */
export function RolloutActions({ rollout }: { readonly rollout: RolloutBody }): ReactNode {
  const [asking, setAsking] = useState<RolloutMove>();
  const queries = useQueryClient();
  const offered: readonly RolloutMove[] = [
    "roll-back",
    "finish",
    rollout.state === "paused" ? "resume" : "pause",
    "advance",
  ];
  const refresh = () => queries.invalidateQueries({ queryKey: ["rollout"] });
  const move = async (name: RolloutMove, why: string) => {
    const { rollout: moved } = await rollouts.move(rollout.id, name, rollout.step, { why });
    await refresh();
    const { done, undo } = actions[name];
    const onUndo = async () => {
      await rollouts.move(rollout.id, undo!, moved.step, { why: "Undone in the console" });
      await refresh();
    };
    showDone(done, undo === undefined ? {} : { onUndo });
  };
  return (
    <Can permission="edit">
      {offered.map((name) => (
        <Button
          key={name}
          kind={name === "advance" ? "primary" : actions[name].danger === true ? "danger" : "plain"}
          onClick={() => setAsking(name)}
        >
          {actions[name].label}
        </Button>
      ))}
      {offered.map((name) => (
        <ConfirmDialog
          action={actions[name].label}
          danger={actions[name].danger === true}
          key={name}
          onClose={() => setAsking(undefined)}
          onConfirm={(why) => move(name, why)}
          open={asking === name}
          title={actions[name].title}
        >
          {actions[name].what(rollout)}
        </ConfirmDialog>
      ))}
    </Can>
  );
}
