import type { VersionBody } from "@sluice/protocol/admin";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { admin } from "../../api/admin.ts";
import { versionsQuery } from "../../api/queries.ts";
import { renderPolicyYaml } from "../../policy/policy-form.ts";
import { useMay } from "../../session/use-session.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { Select } from "../../ui/select.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { showDone } from "../../ui/toast.tsx";
import type { PolicySearch } from "./policy-search.ts";

interface VersionsTabProps {
  readonly id: string;
  /** The version in the store; 0: the policy was deleted. */
  readonly current: number;
  readonly search: PolicySearch;
  readonly setSearch: (change: PolicySearch) => void;
}

export function VersionsTab({ id, current, search, setSearch }: VersionsTabProps): ReactNode {
  const { data: versions, error, refetch } = useQuery(versionsQuery(id));
  const [reverting, setReverting] = useState<VersionBody>();
  const mayEdit = useMay("edit");
  const columns = useMemo(() => makeColumns(mayEdit, setReverting), [mayEdit]);
  if (error !== null && versions === undefined)
    return <ErrorNotice error={error} onRetry={() => void refetch()} what="The versions cannot be shown" />;
  if (versions === undefined) return <SkeletonRows />;
  return (
    <div className="flex flex-col gap-4">
      <Card flush title="Versions, newest first">
        <DataTable
          columns={columns}
          empty={
            <EmptyState icon="history" title={`${id} never was in the store`}>
              Check the id, or create the policy.
            </EmptyState>
          }
          label="Versions"
          rowKey={({ version }) => String(version)}
          rows={versions}
        />
      </Card>
      {versions.length > 1 && <Comparison search={search} setSearch={setSearch} versions={versions} />}
      <RevertDialog
        current={current}
        newest={versions[0]?.version ?? 0}
        onClose={() => setReverting(undefined)}
        version={reverting}
      />
    </div>
  );
}

function makeColumns(mayEdit: boolean, revert: (version: VersionBody) => void): readonly TableColumn<VersionBody>[] {
  return [
    {
      id: "version",
      title: "Version",
      width: "13rem",
      sortBy: ({ version }) => version,
      cell: ({ version, current, deleted, rollout }) => (
        <span className="flex items-center gap-2">
          {version}
          {current && <Badge tone="good">Current</Badge>}
          {deleted && <Badge tone="denied">Deletion</Badge>}
          {rollout !== undefined && <Badge tone="accent">{rollout.state.replaceAll("_", " ")}</Badge>}
        </span>
      ),
    },
    {
      id: "at",
      title: "When",
      width: "8rem",
      sortBy: ({ at_ms: atMs }) => atMs,
      cell: ({ at_ms: atMs }) => <RelativeTime ms={atMs} />,
    },
    { id: "author", title: "Who", width: "10rem", sortBy: ({ author }) => author, cell: ({ author }) => author },
    {
      id: "why",
      title: "Why",
      cell: ({ why, revert_of: of }) =>
        of === undefined ? why : `${why}${why === "" ? "" : ", "}revert to version ${of}`,
    },
    {
      id: "action",
      title: "",
      right: true,
      width: "8rem",
      cell: (version) =>
        mayEdit &&
        !version.current &&
        !version.deleted && (
          <Button aria-label={`Revert to version ${version.version}`} icon="undo" onClick={() => revert(version)} small>
            Revert
          </Button>
        ),
    },
  ];
}

interface RevertDialogProps {
  readonly version: VersionBody | undefined;
  readonly current: number;
  readonly newest: number;
  readonly onClose: () => void;
}

function RevertDialog({ version, current, newest, onClose }: RevertDialogProps): ReactNode {
  const queries = useQueryClient();
  const revert = async (why: string) => {
    if (version === undefined) return;
    const { policy: id } = version;
    const refresh = async () => {
      await queries.invalidateQueries({ queryKey: ["policy", id] });
      await queries.invalidateQueries({ queryKey: ["policies"] });
    };
    const { policy } = await admin.revertPolicy(id, version.version, undefined, { expected: newest, why });
    await refresh();
    showDone(`${id} is as in version ${version.version}`, {
      about: `This is version ${policy.version}.`,
      ...(current > 0 && {
        onUndo: async () => {
          await admin.revertPolicy(id, current, undefined, { expected: policy.version, why: "undo of a revert" });
          await refresh();
        },
      }),
    });
  };
  return (
    <ConfirmDialog
      action="Revert"
      onClose={onClose}
      onConfirm={revert}
      open={version !== undefined}
      title={`Revert to version ${version?.version ?? ""}?`}
    >
      A new version is written with what that version said, and applies to every request at once, on every node, within
      a second.
    </ConfirmDialog>
  );
}

interface ComparisonProps {
  readonly versions: readonly VersionBody[];
  readonly search: PolicySearch;
  readonly setSearch: (change: PolicySearch) => void;
}

function Comparison({ versions, search, setSearch }: ComparisonProps): ReactNode {
  const to = versions.find(({ version }) => version === search.to) ?? versions[0]!;
  const from = versions.find(({ version }) => version === search.from) ?? versions[1]!;
  const options = versions.map(({ version, deleted }) => ({
    value: String(version),
    label: `Version ${version}${deleted ? " (deletion)" : ""}`,
  }));
  const text = ({ document }: VersionBody) => (document === undefined ? "" : renderPolicyYaml(document));
  return (
    <Card
      aside={
        <>
          <Select
            hideLabel
            label="Compare from"
            onChange={(value) => setSearch({ from: Number(value) })}
            options={options}
            value={String(from.version)}
          />
          <span>with</span>
          <Select
            hideLabel
            label="Compare to"
            onChange={(value) => setSearch({ to: Number(value) })}
            options={options}
            value={String(to.version)}
          />
        </>
      }
      title="Compare"
    >
      <DiffView
        after={text(to)}
        afterLabel={`Version ${to.version}`}
        before={text(from)}
        beforeLabel={`Version ${from.version}`}
        label={`Version ${from.version} compared with version ${to.version}`}
      />
    </Card>
  );
}
