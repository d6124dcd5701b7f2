import type { DisabledPolicyBody } from "@sluice/protocol/admin";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { disabled } from "../../api/disabled.ts";
import { formatDuration } from "../../format/times.ts";
import { Can } from "../../session/can.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { DurationSelect } from "../../ui/duration-select.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { PolicyField, usePolicyKnown } from "../../ui/policy-field.tsx";
import { PolicyLink } from "../../ui/policy-link.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { Select } from "../../ui/select.tsx";
import { showDone } from "../../ui/toast.tsx";

const dayMs = 86_400_000;

/** Policies that are switched off for a while: less than the kill switch, where one policy is wrong. */
export function DisabledCard(): ReactNode {
  const [asking, setAsking] = useState(false);
  const { data, error } = useQuery({
    queryKey: ["disabled"],
    queryFn: ({ signal }) => disabled.list(signal),
    refetchInterval: 10_000,
  });
  return (
    <Card title="Policies switched off for a while">
      {error !== null && <ErrorNotice error={error} what="They cannot be listed" />}
      {data?.items.length === 0 && (
        <p className="text-sm text-ink-soft">
          None. Switch off a policy that denies what it should not, and it decides again when the time is over.
        </p>
      )}
      <ul className="flex flex-col divide-y divide-line">
        {data?.items.map((item) => (
          <DisabledItem item={item} key={item.policy} />
        ))}
      </ul>
      <Can permission="operate">
        <Button className="mt-3" onClick={() => setAsking(true)}>
          Switch off a policy…
        </Button>
        <DisableDialog onClose={() => setAsking(false)} open={asking} />
      </Can>
    </Card>
  );
}

function useRefresh(): () => Promise<unknown> {
  const queries = useQueryClient();
  return () =>
    Promise.all(["disabled", "policies", "policy"].map((name) => queries.invalidateQueries({ queryKey: [name] })));
}

function DisabledItem({ item }: { readonly item: DisabledPolicyBody }): ReactNode {
  const [ending, setEnding] = useState(false);
  const refresh = useRefresh();
  const end = async (why: string) => {
    await disabled.end(item.policy, { why });
    await refresh();
    showDone(`${item.policy} decides again`);
  };
  return (
    <li className="flex flex-wrap items-center gap-2 py-2 text-sm">
      <PolicyLink id={item.policy} />
      <Badge tone="warning">{item.mode === "shadow" ? "shadow" : "off"}</Badge>
      <span className="min-w-0 flex-1 text-xs text-ink-faint">
        “{item.reason}”, by {item.author}; ends <RelativeTime ms={item.until_ms} />
      </span>
      <Can permission="operate">
        <Button onClick={() => setEnding(true)} small>
          Switch on
        </Button>
      </Can>
      <ConfirmDialog
        action="Switch on"
        onClose={() => setEnding(false)}
        onConfirm={end}
        open={ending}
        title={`Switch ${item.policy} on again?`}
      >
        Its limits hold again on every node.
      </ConfirmDialog>
    </li>
  );
}

function DisableDialog({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }): ReactNode {
  const refresh = useRefresh();
  const [policy, setPolicy] = useState("");
  const [mode, setMode] = useState<DisabledPolicyBody["mode"]>("allow");
  const [forMs, setForMs] = useState(3_600_000);
  const isKnown = usePolicyKnown(policy) === true;
  const confirm = async (why: string) => {
    await disabled.set(policy, { mode, for_ms: forMs }, { why });
    await refresh();
    showDone(`${policy} is switched off for ${formatDuration(forMs)}`, {
      onUndo: async () => {
        await disabled.end(policy, { why: "Undone in the console" });
        await refresh();
      },
    });
  };
  return (
    <ConfirmDialog
      action="Switch off"
      danger
      disabled={!isKnown}
      onClose={onClose}
      onConfirm={confirm}
      open={open}
      title="Switch off a policy for a while"
    >
      <div className="flex flex-col gap-3">
        <PolicyField label="Policy" onChange={setPolicy} value={policy} />
        <Select
          label="Until then"
          onChange={setMode}
          options={[
            { value: "allow", label: "it limits nothing" },
            { value: "shadow", label: "it only reports what it would deny" },
          ]}
          value={mode}
        />
        <DurationSelect label="Ends after" mostMs={dayMs} onChange={setForMs} value={forMs} />
      </div>
    </ConfirmDialog>
  );
}
