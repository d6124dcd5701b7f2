import type { PlanBody } from "@sluice/protocol/admin";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { ApiError } from "../../api/api-error.ts";
import { planQuery, plans } from "../../api/plans.ts";
import { useMay } from "../../session/use-session.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { TextField } from "../../ui/field.tsx";
import { Select } from "../../ui/select.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { showDone } from "../../ui/toast.tsx";
import { type MatrixRow, parseWindows, windowText } from "./plan-matrix.ts";

interface PlanDialogProps {
  readonly name: string;
  readonly isNew: boolean;
  /** Limits that know plans, which a plan can be given windows for. */
  readonly rows: readonly MatrixRow[];
  readonly onClose: () => void;
}

interface Line {
  readonly policy: string;
  readonly limit: string;
  readonly windows: string;
}

export function PlanDialog({ name, isNew, rows, onClose }: PlanDialogProps): ReactNode {
  const { data, error } = useQuery({ ...planQuery(name), enabled: !isNew });
  if (isNew) return <PlanForm onClose={onClose} plan={undefined} rows={rows} />;
  if (data !== undefined) return <Editing onClose={onClose} plan={data} rows={rows} />;
  return (
    <Dialog onClose={onClose} open title={`Plan ${name}`} wide>
      {error === null ? <SkeletonRows rows={3} /> : <ErrorNotice error={error} what="The plan cannot be shown" />}
    </Dialog>
  );
}

/** Keeps the version that the edit began with: a newer one that arrives meanwhile is a conflict, and is shown as one. */
function Editing({ plan, ...rest }: PlanFormProps): ReactNode {
  const [before] = useState(plan);
  return <PlanForm plan={before} {...rest} />;
}

function readLines(plan: PlanBody | undefined): readonly Line[] {
  return (plan?.limits ?? []).map(({ policy, limit, windows }) => ({
    policy,
    limit,
    windows: windows.map(windowText).join(", "),
  }));
}

interface PlanFormProps {
  readonly plan: PlanBody | undefined;
  readonly rows: readonly MatrixRow[];
  readonly onClose: () => void;
}

function PlanForm({ plan, rows, onClose }: PlanFormProps): ReactNode {
  const form = useId();
  const mayEdit = useMay("edit");
  const [name, setName] = useState(plan?.plan ?? "");
  const [lines, setLines] = useState(readLines(plan));
  const [why, setWhy] = useState("");
  const [deleting, setDeleting] = useState(false);
  const { save, remove, take, busy, error, conflict } = useChanges(plan, onClose);
  const complete =
    name.trim() !== "" &&
    why.trim() !== "" &&
    lines.every(({ policy, windows }) => policy !== "" && windows.trim() !== "");
  const setLine = (at: number, change: Partial<Line>) =>
    setLines(lines.map((line, index) => (index === at ? { ...line, ...change } : line)));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (complete) void save(name.trim(), lines, why.trim());
  };
  return (
    <Dialog
      about="One change to every policy in it: all of them are published together, or none."
      actions={
        mayEdit && (
          <>
            {plan !== undefined && plan.limits.length > 0 && (
              <Button className="mr-auto" icon="trash" kind="danger" onClick={() => setDeleting(true)}>
                Delete plan
              </Button>
            )}
            <Button onClick={onClose}>Cancel</Button>
            <Button busy={busy} disabled={!complete} form={form} kind="primary" type="submit">
              {plan === undefined ? "Create plan" : "Publish plan"}
            </Button>
          </>
        )
      }
      onClose={onClose}
      open
      title={plan === undefined ? "New plan" : `Plan ${plan.plan}`}
      wide
    >
      <form className="flex flex-col gap-3 pb-3" id={form} onSubmit={submit}>
        {plan === undefined && (
          <TextField
            hint="Subjects get it as their tier, such as pro"
            label="Name"
            maxLength={128}
            onChange={(event) => setName(event.target.value)}
            value={name}
          />
        )}
        {lines.map((line, at) => (
          <LineFields
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is known by its place.
            key={at}
            line={line}
            onRemove={() => setLines(lines.toSpliced(at, 1))}
            readOnly={!mayEdit}
            set={(change) => setLine(at, change)}
          />
        ))}
        {lines.length === 0 && <p className="text-sm text-ink-faint">No limit has windows for this plan yet.</p>}
        {mayEdit && <AddLine lines={lines} onAdd={(line) => setLines([...lines, line])} rows={rows} />}
        {mayEdit && (
          <TextField
            hint="Appears in the history and in the audit."
            label="Reason"
            maxLength={1_000}
            onChange={(event) => setWhy(event.target.value)}
            value={why}
          />
        )}
        {error !== undefined && <ErrorNotice error={error} what="The plan was not changed" />}
        {conflict !== undefined && (
          <Conflict
            lines={lines}
            name={name}
            onKeepMine={(version) => void save(name.trim(), lines, why.trim(), version)}
            onTakeTheirs={(plan) => {
              setLines(readLines(plan));
              take(plan.version);
            }}
          />
        )}
        {plan !== undefined && plan.in_files.length > 0 && (
          <p className="text-xs text-ink-faint">
            Policy files have windows for it as well, in {plan.in_files.map(({ policy }) => policy).join(", ")}. Change
            them there.
          </p>
        )}
      </form>
      <ConfirmDialog
        action="Delete plan"
        danger
        onClose={() => setDeleting(false)}
        onConfirm={remove}
        open={deleting}
        title={`Delete plan ${plan?.plan ?? ""}?`}
        typed={plan?.plan ?? ""}
      >
        Its windows go from {plan?.limits.length} limits. Subjects keep the tier, and fall to each limit’s own windows.
      </ConfirmDialog>
    </Dialog>
  );
}

interface ConflictProps {
  readonly name: string;
  readonly lines: readonly Line[];
  readonly onKeepMine: (version: number) => void;
  readonly onTakeTheirs: (plan: PlanBody) => void;
}

/** Another writer was quicker: both plans, and what to do. */
function Conflict({ name, lines, onKeepMine, onTakeTheirs }: ConflictProps): ReactNode {
  const { data } = useQuery({ ...planQuery(name), queryKey: ["plan", name, "conflict"], staleTime: 0 });
  if (data === undefined) return <SkeletonRows rows={2} />;
  return (
    <div className="flex flex-col gap-2 rounded-md border border-warning p-3">
      <p className="text-sm" role="alert">
        Another writer changed the plan first. Nothing of yours was published.
      </p>
      <DiffView
        after={renderLines(lines)}
        afterLabel="Yours"
        before={renderLines(readLines(data))}
        beforeLabel="In the store"
        label="The stored plan and yours"
      />
      <div className="flex justify-end gap-2">
        <Button onClick={() => onTakeTheirs(data)} small>
          Discard mine
        </Button>
        <Button kind="primary" onClick={() => onKeepMine(data.version)} small>
          Publish mine instead
        </Button>
      </div>
    </div>
  );
}

function renderLines(lines: readonly Line[]): string {
  const sorted = lines.toSorted((one, other) =>
    `${one.policy} ${one.limit}` < `${other.policy} ${other.limit}` ? -1 : 1,
  );
  return sorted.map(({ policy, limit, windows }) => `${policy}, ${limit}: ${windows}\n`).join("");
}

function useChanges(plan: PlanBody | undefined, onClose: () => void) {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [conflict, setConflict] = useState<number>();
  const [expected, setExpected] = useState(plan?.version ?? 0);
  const refresh = async () => {
    for (const key of ["plans", "plan", "policies", "policy"]) await queries.invalidateQueries({ queryKey: [key] });
  };
  /** What was there before comes back as one more change. */
  const restore = async (name: string, version: number) => {
    const before = plan?.limits ?? [];
    if (before.length === 0) await plans.delete(name, { expected: version, why: "undo of a change" });
    else await plans.put(name, before, { expected: version, why: "undo of a change" });
    await refresh();
  };
  const save = async (name: string, lines: readonly Line[], why: string, version = expected) => {
    setBusy(true);
    setError(undefined);
    setConflict(undefined);
    try {
      const limits = lines.map(({ policy, limit, windows }) => ({ policy, limit, windows: parseWindows(windows) }));
      const change = await plans.put(name, limits, { expected: version, why });
      await refresh();
      onClose();
      showDone(`Published plan ${name}`, {
        about: `${change.policies.length === 1 ? "One policy" : `${change.policies.length} policies`} changed, on every node within a second.`,
        onUndo: () => restore(name, change.plan.version),
      });
    } catch (failure) {
      const current = failure instanceof ApiError ? failure.currentVersion : undefined;
      if (current !== undefined && current > 0) setConflict(current);
      else setError(failure);
    } finally {
      setBusy(false);
    }
  };
  /** Goes on from another version. */
  const take = (version: number) => {
    setExpected(version);
    setConflict(undefined);
  };
  const remove = async (why: string) => {
    if (plan === undefined) return;
    await plans.delete(plan.plan, { expected: plan.version, why });
    await refresh();
    onClose();
    showDone(`Deleted plan ${plan.plan}`, { onUndo: () => restore(plan.plan, 0) });
  };
  return { save, remove, take, busy, error, conflict };
}

interface LineFieldsProps {
  readonly line: Line;
  readonly readOnly: boolean;
  readonly set: (change: Partial<Line>) => void;
  readonly onRemove: () => void;
}

function LineFields({ line, readOnly, set, onRemove }: LineFieldsProps): ReactNode {
  const name = `${line.policy}, ${line.limit}`;
  return (
    <div className="flex items-center gap-3">
      <span className="w-64 shrink-0 truncate text-sm" title={name}>
        <span className="font-medium">{line.policy}</span> <span className="text-xs text-ink-faint">{line.limit}</span>
      </span>
      <div className="flex-1">
        <TextField
          className="font-mono"
          hideLabel
          label={`Windows of ${name}`}
          onChange={(event) => set({ windows: event.target.value })}
          placeholder="100/s burst 200, 1000/h"
          readOnly={readOnly}
          value={line.windows}
        />
      </div>
      {!readOnly && <IconButton icon="trash" label={`Remove ${name}`} onClick={onRemove} />}
    </div>
  );
}

interface AddLineProps {
  readonly rows: readonly MatrixRow[];
  readonly lines: readonly Line[];
  readonly onAdd: (line: Line) => void;
}

/** Adds a limit that knows plans, or any other by its policy. */
function AddLine({ rows, lines, onAdd }: AddLineProps): ReactNode {
  const [policy, setPolicy] = useState("");
  const [limit, setLimit] = useState("");
  const left = rows.filter((row) => !lines.some((line) => line.policy === row.policy && line.limit === row.limit));
  return (
    <fieldset className="flex flex-wrap items-end gap-3 rounded-md border border-line bg-sunken/60 p-3">
      <legend className="sr-only">Add a limit</legend>
      {left.length > 0 && (
        <Select
          className="min-w-56"
          label="Add a limit that knows plans"
          onChange={(key) => {
            const row = left.find((one) => JSON.stringify([one.policy, one.limit]) === key);
            if (row !== undefined) onAdd({ policy: row.policy, limit: row.limit, windows: "" });
          }}
          options={[
            { value: "", label: "Choose…" },
            ...left.map((row) => ({
              value: JSON.stringify([row.policy, row.limit]),
              label: `${row.policy}, ${row.limit}`,
            })),
          ]}
          value=""
        />
      )}
      <TextField
        label="Or by policy"
        onChange={(event) => setPolicy(event.target.value)}
        placeholder="orders"
        value={policy}
      />
      <TextField
        label="and limit"
        onChange={(event) => setLimit(event.target.value)}
        placeholder="user"
        value={limit}
      />
      <Button
        disabled={policy === "" || limit === ""}
        icon="plus"
        onClick={() => {
          onAdd({ policy, limit, windows: "" });
          setPolicy("");
          setLimit("");
        }}
      >
        Add
      </Button>
    </fieldset>
  );
}
