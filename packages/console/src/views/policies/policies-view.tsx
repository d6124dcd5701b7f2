import type { PolicyBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useDeferredValue, useMemo } from "react";
import { policiesQuery } from "../../api/queries.ts";
import { formatNoun } from "../../format/numbers.ts";
import { Can } from "../../session/can.tsx";
import { useMay } from "../../session/use-session.ts";
import { buttonClass } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { SearchField } from "../../ui/field.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Page } from "../../ui/page.tsx";
import { Select } from "../../ui/select.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { type PoliciesSearch, type PolicyState, policyStates } from "./policies-search.ts";
import { policyColumns, SummariesContext } from "./policy-columns.tsx";
import { findStates, stateLabels } from "./policy-state.ts";
import { useSummaries } from "./use-summaries.ts";

const noPolicies: readonly PolicyBody[] = [];

export default function PoliciesView(): ReactNode {
  const search = useSearch({ from: "/shell/policies" });
  const navigate = useNavigate({ from: "/policies" });
  const { data, error, refetch } = useQuery(policiesQuery);
  const policies = data ?? noPolicies;
  const set = (change: Partial<PoliciesSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <Page
      about="What is limited, and by whom. A policy’s page has its usage, its versions and its audit."
      actions={
        <>
          <ExportMenu columns={csvColumns} name="policies" rows={policies} />
          <Can permission="edit">
            <Link className={buttonClass("primary")} to="/policies/new">
              <Icon name="plus" /> New policy
            </Link>
          </Can>
        </>
      }
      title="Policies"
    >
      {error !== null && data === undefined ? (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The policies cannot be listed" />
      ) : data === undefined ? (
        <SkeletonRows rows={10} />
      ) : policies.length === 0 ? (
        <NoPolicies />
      ) : (
        <PolicyList policies={policies} search={search} set={set} />
      )}
    </Page>
  );
}

const csvColumns = {
  id: ({ id }: PolicyBody) => id,
  owner: ({ owner }: PolicyBody) => owner,
  version: ({ version }: PolicyBody) => version,
  state: (policy: PolicyBody) => findStates(policy).join(" "),
  changed: ({ changed_ms: ms }: PolicyBody) => new Date(ms).toISOString(),
  author: ({ author }: PolicyBody) => author,
};

function NoPolicies(): ReactNode {
  const mayEdit = useMay("edit");
  return (
    <EmptyState
      actions={
        mayEdit && (
          <Link className={buttonClass("primary")} to="/policies/new">
            Create the first policy
          </Link>
        )
      }
      icon="policies"
      title="There are no policies yet"
    >
      Requests are limited by the default policy alone.
      {mayEdit
        ? " Create a policy here, or import policy files with sluice policy apply."
        : " An editor or an admin can create one, here or with sluice policy apply."}
    </EmptyState>
  );
}

interface PolicyListProps {
  readonly policies: readonly PolicyBody[];
  readonly search: PoliciesSearch;
  readonly set: (change: Partial<PoliciesSearch>) => void;
}

function PolicyList({ policies, search, set }: PolicyListProps): ReactNode {
  const deferred = useDeferredValue(search);
  const searchable = useMemo(() => makeSearchable(policies), [policies]);
  const found = useMemo(() => filterPolicies(searchable, deferred), [searchable, deferred]);
  const ids = useMemo(() => policies.map(({ id }) => id), [policies]);
  const { byId, failed, show } = useSummaries(ids);
  const summaries = useMemo(() => ({ byId, failed, show }), [byId, failed, show]);
  const owners = useMemo(
    () => [...new Set(policies.map(({ owner }) => owner ?? ""))].filter(Boolean).toSorted(),
    [policies],
  );
  return (
    <>
      <div className="flex flex-wrap items-end gap-2">
        <SearchField
          className="w-72"
          label="Search by id, owner or description"
          onChange={(event) => set({ q: event.target.value || undefined })}
          value={search.q ?? ""}
        />
        <Select
          className="w-44"
          hideLabel
          label="Owner"
          onChange={(owner) => set({ owner: owner === "" ? undefined : owner })}
          options={[{ value: "", label: "Any owner" }, ...owners.map((owner) => ({ value: owner, label: owner }))]}
          value={search.owner ?? ""}
        />
        <Select
          className="w-44"
          hideLabel
          label="State"
          onChange={(state) => set({ state: state === "any" ? undefined : state })}
          options={policyStates.map((state) => ({
            value: state,
            label: state === "any" ? "Any state" : stateLabels[state].label,
          }))}
          value={search.state ?? ("any" as PolicyState)}
        />
        <p aria-live="polite" className="pb-1.5 text-sm text-ink-faint">
          {formatNoun(found.length, "policy", "policies")}
        </p>
      </div>
      <div className="overflow-hidden rounded-lg border border-line bg-surface pt-1">
        <SummariesContext value={summaries}>
          <DataTable
            columns={policyColumns}
            empty={
              <EmptyState icon="search" title="No policy matches">
                Search for another part of its id, or choose any owner and any state.
              </EmptyState>
            }
            label="Policies"
            maxHeight="calc(100vh - 15rem)"
            onSort={(sort) => set({ sort: sort?.by, desc: sort?.descending === true ? 1 : undefined })}
            rowHeight={40}
            rowKey={({ id }) => id}
            rows={found}
            sort={search.sort === undefined ? undefined : { by: search.sort, descending: search.desc === 1 }}
          />
        </SummariesContext>
      </div>
    </>
  );
}

interface Searchable {
  readonly policy: PolicyBody;
  readonly text: string;
}

/** What a search looks at, made once for all searches. */
function makeSearchable(policies: readonly PolicyBody[]): readonly Searchable[] {
  return policies.map((policy) => ({
    policy,
    text: `${policy.id} ${policy.owner ?? ""} ${policy.document.description ?? ""}`.toLowerCase(),
  }));
}

function filterPolicies(
  searchable: readonly Searchable[],
  { q = "", owner, state }: PoliciesSearch,
): readonly PolicyBody[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = searchable.filter(({ policy, text }) => {
    if (owner !== undefined && policy.owner !== owner) return false;
    if (state !== undefined && state !== "any" && !findStates(policy).includes(state)) return false;
    return words.every((word) => text.includes(word));
  });
  return found.map(({ policy }) => policy);
}
