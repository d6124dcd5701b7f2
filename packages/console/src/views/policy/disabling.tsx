import type { DisabledPolicyBody } from "@sluice/protocol/admin";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { type DisableRequest, disabled as disabling } from "../../api/disabled.ts";
import { formatDuration } from "../../format/times.ts";
import { Can } from "../../session/can.tsx";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { DurationSelect } from "../../ui/duration-select.tsx";
import { Icon } from "../../ui/icon.tsx";
import { useNow } from "../../ui/now.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { showDone } from "../../ui/toast.tsx";

/** Above a policy that does not limit for a while. */
export function DisabledNotice({ disabled }: { readonly disabled: DisabledPolicyBody }): ReactNode {
  const nowMs = useNow();
  const refresh = useRefresh();
  const [asking, setAsking] = useState(false);
  const { policy, mode, until_ms: untilMs, reason, author } = disabled;
  const enable = async (why: string) => {
    await disabling.end(policy, { why });
    await refresh();
    showDone(`${policy} is in force again`);
  };
  return (
    <div className="flex flex-wrap items-center gap-3 rounded-lg bg-warning-soft px-4 py-2.5 text-sm" role="status">
      <span className="text-warning">
        <Icon name="warning" />
      </span>
      <span className="min-w-0 flex-1">
        <strong>
          {mode === "allow"
            ? "Disabled: it denies nothing and counts nothing."
            : "Disabled: it counts, and denies nothing."}
        </strong>{" "}
        “{reason}”, by {author}. It is in force again in {formatDuration(untilMs - nowMs)}.
      </span>
      <Can permission="operate">
        <Button onClick={() => setAsking(true)} small>
          Enable now
        </Button>
      </Can>
      <ConfirmDialog
        action="Enable"
        onClose={() => setAsking(false)}
        onConfirm={enable}
        open={asking}
        title={`Enable ${policy}?`}
      >
        It decides about every request that matches again, on every node, within a second.
      </ConfirmDialog>
    </div>
  );
}

export function DisableButton({ policy }: { readonly policy: string }): ReactNode {
  const refresh = useRefresh();
  const [asking, setAsking] = useState(false);
  const [request, setRequest] = useState<DisableRequest>({ mode: "allow", for_ms: 3_600_000 });
  const disable = async (why: string) => {
    await disabling.set(policy, request, { why });
    await refresh();
    showDone(`${policy} is disabled for ${formatDuration(request.for_ms)}`, {
      onUndo: async () => {
        await disabling.end(policy, { why: "undo" });
        await refresh();
      },
    });
  };
  return (
    <Can permission="operate">
      <Button icon="pause" kind="quiet" onClick={() => setAsking(true)}>
        Disable…
      </Button>
      <ConfirmDialog
        action="Disable policy"
        danger
        onClose={() => setAsking(false)}
        onConfirm={disable}
        open={asking}
        title={`Disable ${policy} for a while?`}
      >
        <div className="flex flex-col items-start gap-3">
          <p>Its requests still match it, so they do not fall to the default. Other policies limit them as before.</p>
          <Segmented
            label="Meanwhile"
            onChange={(mode) => setRequest({ ...request, mode })}
            options={[
              { value: "allow", label: "Deny and count nothing" },
              { value: "shadow", label: "Count, and deny nothing" },
            ]}
            value={request.mode}
          />
          <DurationSelect
            label="For"
            onChange={(ms) => setRequest({ ...request, for_ms: ms })}
            value={request.for_ms}
          />
        </div>
      </ConfirmDialog>
    </Can>
  );
}

function useRefresh() {
  const queries = useQueryClient();
  return async () => {
    for (const key of ["policies", "policy", "disabled", "audit"]) await queries.invalidateQueries({ queryKey: [key] });
  };
}
