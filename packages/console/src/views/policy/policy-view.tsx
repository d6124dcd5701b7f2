import type { PageBody, PolicyBody, PolicySummaryBody } from "@sluice/protocol/admin";
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { admin } from "../../api/admin.ts";
import { ApiError } from "../../api/api-error.ts";
import { ask } from "../../api/ask.ts";
import { policyQuery } from "../../api/queries.ts";
import { Can } from "../../session/can.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button, buttonClass } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Page } from "../../ui/page.tsx";
import { PathLink } from "../../ui/path-link.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { showDone } from "../../ui/toast.tsx";
import { AuditTab } from "./audit-tab.tsx";
import { DefinitionTab } from "./definition-tab.tsx";
import { DisableButton, DisabledNotice } from "./disabling.tsx";
import type { PolicySearch, PolicyTab } from "./policy-search.ts";
import { UsageTab } from "./usage-tab.tsx";
import { VersionsTab } from "./versions-tab.tsx";

const summaryQuery = (id: string) =>
  queryOptions({
    queryKey: ["policy", id, "summary"],
    queryFn: ({ signal }) => ask<PageBody<PolicySummaryBody>>("GET", "policy-summaries", { query: { id }, signal }),
  });

export default function PolicyView(): ReactNode {
  const { id } = useParams({ from: "/shell/policies/$id" });
  const { data: policy, error, refetch } = useQuery(policyQuery(id));
  if (policy !== undefined) return <PolicyPage key={id} policy={policy} />;
  return (
    <Page title={id}>
      {error === null ? (
        <SkeletonRows rows={8} />
      ) : (
        <MissingPolicy error={error} id={id} onRetry={() => void refetch()} />
      )}
    </Page>
  );
}

function MissingPolicy({
  id,
  error,
  onRetry,
}: {
  readonly id: string;
  readonly error: Error;
  readonly onRetry: () => void;
}): ReactNode {
  if (!(error instanceof ApiError && error.status === 404))
    return <ErrorNotice error={error} onRetry={onRetry} what="The policy cannot be shown" />;
  return (
    <>
      <EmptyState
        actions={
          <Link className={buttonClass()} search={{}} to="/policies">
            All policies
          </Link>
        }
        icon="policies"
        title={`There is no policy ${id} in the store`}
      >
        It may have been deleted: its versions are below, and reverting to one brings it back. Policies from policy
        files are not in the store.
      </EmptyState>
      <VersionsTab current={0} id={id} search={{}} setSearch={() => undefined} />
    </>
  );
}

function PolicyPage({ policy }: { readonly policy: PolicyBody }): ReactNode {
  const { id } = policy;
  const search = useSearch({ from: "/shell/policies/$id" });
  const navigate = useNavigate({ from: "/policies/$id" });
  const { data: summaries } = useQuery(summaryQuery(id));
  const prose = summaries?.items[0]?.prose;
  const setSearch = (change: PolicySearch) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <Page
      about={<About policy={policy} prose={prose} />}
      actions={<PolicyActions policy={policy} />}
      heading={
        <>
          {id}
          <PolicyBadges policy={policy} />
        </>
      }
      title={id}
    >
      {policy.disabled !== undefined && <DisabledNotice disabled={policy.disabled} />}
      <Tabs<PolicyTab>
        label={`About ${id}`}
        onChange={(tab) => setSearch({ tab: tab === "usage" ? undefined : tab, from: undefined, to: undefined })}
        tabs={[
          {
            value: "usage",
            label: "Usage",
            content: () => <UsageTab policy={policy} search={search} setSearch={setSearch} />,
          },
          { value: "definition", label: "Definition", content: () => <DefinitionTab policy={policy} prose={prose} /> },
          {
            value: "versions",
            label: "Versions",
            content: () => <VersionsTab current={policy.version} id={id} search={search} setSearch={setSearch} />,
          },
          { value: "audit", label: "Audit", content: () => <AuditTab id={id} /> },
        ]}
        value={search.tab ?? "usage"}
      />
    </Page>
  );
}

function About({
  policy,
  prose,
}: {
  readonly policy: PolicyBody;
  readonly prose: readonly string[] | undefined;
}): ReactNode {
  const { document, owner, version, author, changed_ms: changedMs } = policy;
  const purpose = document.description === undefined ? prose?.[0] : String(document.description);
  return (
    <>
      {purpose !== undefined && <p className="text-ink-soft">{purpose}</p>}
      <p className="mt-1 text-xs">
        Version {version}, changed <RelativeTime ms={changedMs} /> by {author}
        {owner !== undefined && `. Owner: ${owner}`}.
      </p>
    </>
  );
}

function PolicyBadges({ policy }: { readonly policy: PolicyBody }): ReactNode {
  const { rollout } = policy;
  return (
    <span className="flex flex-wrap gap-1.5">
      {policy.disabled !== undefined ? (
        <Badge tone="warning">Disabled</Badge>
      ) : policy.document.mode === "shadow" ? (
        <Badge tone="accent">Shadow</Badge>
      ) : (
        <Badge tone="good">Enforced</Badge>
      )}
      {policy.overridden_by !== undefined && <Badge tone="warning">Replaced by a policy file</Badge>}
      {rollout !== undefined && (
        <PathLink href={`/rollouts/${encodeURIComponent(rollout.id)}`}>
          <Badge tone="accent">
            Version {rollout.to_version} at {rollout.percent} %
          </Badge>
        </PathLink>
      )}
    </span>
  );
}

function PolicyActions({ policy }: { readonly policy: PolicyBody }): ReactNode {
  const { id, version } = policy;
  const [deleting, setDeleting] = useState(false);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const remove = async (why: string) => {
    await admin.deletePolicy(id, { expected: version, why });
    await queries.invalidateQueries({ queryKey: ["policies"] });
    await navigate({ to: "/policies", search: {} });
    showDone(`Deleted ${id}`, {
      about: "Its versions stay.",
      onUndo: async () => {
        await admin.revertPolicy(id, version, undefined, { why: "undo of a deletion" });
        await queries.invalidateQueries({ queryKey: ["policies"] });
      },
    });
  };
  return (
    <>
      {policy.disabled === undefined && <DisableButton policy={id} />}
      <Can permission="edit">
        <Button icon="trash" kind="quiet" onClick={() => setDeleting(true)}>
          Delete
        </Button>
        <Link className={buttonClass("primary")} params={{ id }} to="/policies/$id/edit">
          <Icon name="edit" /> Edit
        </Link>
        <ConfirmDialog
          action="Delete policy"
          danger
          onClose={() => setDeleting(false)}
          onConfirm={remove}
          open={deleting}
          title={`Delete ${id}?`}
          typed={id}
        >
          Requests that match it fall to other policies or to the default, on every node, within a second. Its versions
          stay, so you can bring it back.
        </ConfirmDialog>
      </Can>
    </>
  );
}
