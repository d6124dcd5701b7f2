import type { JsonObject, PolicyBody, PolicyChangeBody } from "@sluice/protocol/admin";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { admin } from "../../api/admin.ts";
import { ApiError } from "../../api/api-error.ts";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { showDone } from "../../ui/toast.tsx";
import { RolloutFields, readRollout, usualRollout } from "./rollout-fields.tsx";

interface PublishDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly document: JsonObject;
  /** The version that the edit began with; absent: the policy is new. */
  readonly before: PolicyBody | undefined;
  /** The version that is replaced: after a conflict another than the edit began with. */
  readonly expected: number;
  /** Another writer was quicker. */
  readonly onConflict: (version: number) => void;
}

/** The last step: why, and whether at once or in steps. */
export function PublishDialog({
  open,
  onClose,
  document,
  before,
  expected,
  onConflict,
}: PublishDialogProps): ReactNode {
  const [choice, setChoice] = useState(usualRollout);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const router = useRouter();
  const id = String(document.id ?? before?.id ?? "");
  const { rollout, error } = before === undefined ? {} : readRollout(choice);

  const publish = async (why: string) => {
    try {
      const change =
        before === undefined
          ? await admin.createPolicy(document, undefined, { why })
          : await admin.putPolicy(id, document, rollout, { expected, why });
      await refresh();
      announce(change);
    } catch (failure) {
      if (!(failure instanceof ApiError) || failure.currentVersion === undefined || before === undefined) throw failure;
      onConflict(failure.currentVersion);
    }
  };
  const refresh = async () => {
    for (const key of ["policies", "policy", "rollouts", "plans"]) await queries.invalidateQueries({ queryKey: [key] });
  };
  const announce = (change: PolicyChangeBody) => {
    const { policy } = change;
    const started = policy.rollout;
    if (started === undefined) {
      void navigate({ to: "/policies/$id", params: { id }, search: {} });
      showDone(before === undefined ? `Created ${id}` : `Published version ${policy.version} of ${id}`, {
        about: "It applies on every node within a second.",
        onUndo: async () => {
          if (before === undefined)
            await admin.deletePolicy(id, { expected: policy.version, why: "undo of a creation" });
          else
            await admin.revertPolicy(id, before.version, undefined, {
              expected: policy.version,
              why: "undo of an edit",
            });
          await refresh();
        },
      });
    } else {
      void router.navigate({ href: `/rollouts/${encodeURIComponent(started.id)}` });
      showDone(`Rolling out version ${started.to_version} of ${id}`, { about: "It starts with the first step." });
    }
  };

  return (
    <ConfirmDialog
      action={before === undefined ? "Create policy" : rollout === undefined ? "Publish" : "Start rollout"}
      disabled={error !== undefined}
      onClose={onClose}
      onConfirm={publish}
      open={open}
      title={before === undefined ? `Create ${id}?` : `Publish ${id}?`}
    >
      {before === undefined ? (
        "It applies to every request that matches, on every node, within a second."
      ) : (
        <RolloutFields onChange={setChoice} value={choice} />
      )}
    </ConfirmDialog>
  );
}
