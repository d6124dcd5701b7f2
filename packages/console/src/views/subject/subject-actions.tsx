import type { SubjectBody } from "@sluice/protocol/admin";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { subjects } from "../../api/subjects.ts";
import { Can } from "../../session/can.tsx";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { DurationSelect } from "../../ui/duration-select.tsx";
import { TextField } from "../../ui/field.tsx";
import { Menu, MenuItem } from "../../ui/menu.tsx";
import { Select } from "../../ui/select.tsx";
import { showDone } from "../../ui/toast.tsx";
import { restoreOverride, restoreTier } from "./undo.ts";

type Asking = "override" | "tier" | "reset" | "block" | "unblock";

interface DialogProps {
  readonly subject: SubjectBody;
  readonly open: boolean;
  readonly onClose: () => void;
}

/** What an operator does about a subject. Each asks for a reason, and offers to undo it where that is possible. */
export function SubjectActions({ subject }: { readonly subject: SubjectBody }): ReactNode {
  const [asking, setAsking] = useState<Asking>();
  const dialog = (name: Asking) => ({ subject, open: asking === name, onClose: () => setAsking(undefined) });
  return (
    <Can permission="operate">
      <Menu trigger={<Button icon="menu">More</Button>}>
        <MenuItem icon="plans" onClick={() => setAsking("tier")}>
          Set the tier…
        </MenuItem>
        <MenuItem icon="refresh" onClick={() => setAsking("reset")}>
          Reset counters…
        </MenuItem>
        {subject.block === undefined ? (
          <MenuItem danger icon="block" onClick={() => setAsking("block")}>
            Block…
          </MenuItem>
        ) : (
          <MenuItem icon="block" onClick={() => setAsking("unblock")}>
            Unblock…
          </MenuItem>
        )}
      </Menu>
      <Button icon="edit" kind="primary" onClick={() => setAsking("override")}>
        Override…
      </Button>
      <OverrideDialog {...dialog("override")} />
      <TierDialog {...dialog("tier")} />
      <ResetDialog {...dialog("reset")} />
      <BlockDialog {...dialog("block")} />
      <UnblockDialog {...dialog("unblock")} />
    </Can>
  );
}

function useRefresh(): () => Promise<void> {
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: ["subject"] });
}

function OverrideDialog({ subject, ...dialog }: DialogProps): ReactNode {
  const refresh = useRefresh();
  const choices = [...new Set(subject.effective.map(({ policy }) => policy))].map((policy) => ({
    value: policy,
    label: policy,
  }));
  const [policy, setPolicy] = useState<string>();
  const [windows, setWindows] = useState("");
  const [forMs, setForMs] = useState(3_600_000);
  const chosen = policy ?? choices[0]?.value ?? "";
  const confirm = async (why: string) => {
    const body = {
      policy: chosen,
      windows: windows
        .split(",")
        .map((one) => one.trim())
        .filter(Boolean),
      until_ms: Date.now() + forMs,
    };
    const {
      replaced,
      subject: changed,
      warnings,
    } = await subjects.setOverride(subject, body, { expected: subject.version, why });
    await refresh();
    showDone(`${subject.value} has ${body.windows.join(", ")}`, {
      about: warnings[0]?.message ?? `Override of ${chosen}, until it ends.`,
      onUndo: async () => {
        await restoreOverride(subject, replaced?.limits ?? [], { policy: chosen }, changed.version);
        await refresh();
      },
    });
  };
  return (
    <ConfirmDialog
      {...dialog}
      action="Set the override"
      disabled={windows.trim() === "" || chosen === ""}
      onConfirm={confirm}
      title={`Override a limit of ${subject.value}`}
    >
      <div className="flex flex-col gap-3">
        <p>Another limit for a while, on every node within a second. Its counters keep what was used.</p>
        <Select label="Policy" onChange={setPolicy} options={choices} value={chosen} />
        <TextField
          className="font-mono"
          hint="As in a policy: 600/m, or 100/s burst 200. Several with commas."
          label="Windows"
          onChange={(event) => setWindows(event.target.value)}
          placeholder="600/m"
          value={windows}
        />
        <DurationSelect label="Ends after" onChange={setForMs} value={forMs} />
      </div>
    </ConfirmDialog>
  );
}

function TierDialog({ subject, ...dialog }: DialogProps): ReactNode {
  const refresh = useRefresh();
  const [tier, setTier] = useState(subject.tier ?? "");
  const confirm = async (why: string) => {
    const options = { expected: subject.version, why };
    const { subject: changed, warnings } =
      tier.trim() === ""
        ? await subjects.deleteTier(subject, options)
        : await subjects.setTier(subject, tier.trim(), options);
    await refresh();
    showDone(
      changed.tier === undefined ? `${subject.value} has no tier` : `${subject.value} is on the tier ${changed.tier}`,
      {
        ...(warnings[0] !== undefined && { about: warnings[0].message }),
        onUndo: async () => {
          await restoreTier(subject, subject.tier, changed.version);
          await refresh();
        },
      },
    );
  };
  return (
    <ConfirmDialog {...dialog} action="Set the tier" onConfirm={confirm} title={`Tier of ${subject.value}`}>
      <TextField
        hint="A name that policies have windows for, such as pro. Empty: no tier."
        label="Tier"
        onChange={(event) => setTier(event.target.value)}
        value={tier}
      />
    </ConfirmDialog>
  );
}

function ResetDialog({ subject, ...dialog }: DialogProps): ReactNode {
  const refresh = useRefresh();
  const [policy, setPolicy] = useState("");
  const policies = [...new Set(subject.effective.map((limit) => limit.policy))];
  const confirm = async (why: string) => {
    const { limits, skipped } = await subjects.reset(subject, policy === "" ? undefined : policy, { why });
    await refresh();
    const about =
      skipped.length === 0
        ? limits.join(", ")
        : `${limits.join(", ")}. Not ${skipped.map(({ limit }) => limit).join(", ")}: they also count by other dimensions.`;
    showDone(`Counters of ${subject.value} were reset`, { about });
  };
  return (
    <ConfirmDialog
      {...dialog}
      action="Reset counters"
      danger
      onConfirm={confirm}
      title={`Reset counters of ${subject.value}?`}
    >
      <div className="flex flex-col gap-3">
        <p>Its counters start afresh on every node, and blocks end. Tier and limits stay. This cannot be undone.</p>
        <Select
          label="Counters of"
          onChange={setPolicy}
          options={[{ value: "", label: "all policies" }, ...policies.map((one) => ({ value: one, label: one }))]}
          value={policy}
        />
      </div>
    </ConfirmDialog>
  );
}

function BlockDialog({ subject, ...dialog }: DialogProps): ReactNode {
  const refresh = useRefresh();
  const [forMs, setForMs] = useState(3_600_000);
  const confirm = async (why: string) => {
    const { subject: changed } = await subjects.block(
      subject,
      { until_ms: Date.now() + forMs },
      { expected: subject.version, why },
    );
    await refresh();
    showDone(`${subject.value} is blocked`, {
      about: "Everything that it asks is denied.",
      onUndo: async () => {
        await subjects.unblock(subject, { expected: changed.version, why: "Undone in the console" });
        await refresh();
      },
    });
  };
  return (
    <ConfirmDialog
      {...dialog}
      action="Block"
      danger
      onConfirm={confirm}
      title={`Block ${subject.value}?`}
      typed={subject.value}
    >
      <div className="flex flex-col gap-3">
        <p>
          Every request with {subject.dimension} {subject.value} is denied on every node, whatever room it has.
        </p>
        <DurationSelect label="Ends after" onChange={setForMs} value={forMs} />
      </div>
    </ConfirmDialog>
  );
}

function UnblockDialog({ subject, ...dialog }: DialogProps): ReactNode {
  const refresh = useRefresh();
  const confirm = async (why: string) => {
    await subjects.unblock(subject, { expected: subject.version, why });
    await refresh();
    showDone(`${subject.value} is no longer blocked`);
  };
  return (
    <ConfirmDialog {...dialog} action="Unblock" onConfirm={confirm} title={`Unblock ${subject.value}?`}>
      Its limits decide again, on every node.
    </ConfirmDialog>
  );
}
