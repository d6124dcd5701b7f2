import type { PolicyBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { policyQuery } from "../../api/queries.ts";
import { renderPolicyYaml } from "../../policy/policy-form.ts";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Page } from "../../ui/page.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { PolicyEditor } from "./policy-editor.tsx";

export default function EditPolicyView(): ReactNode {
  const { id } = useParams({ from: "/shell/policies/$id/edit" });
  const { data, error, refetch, isFetchedAfterMount } = useQuery({ ...policyQuery(id), staleTime: 0 });
  // Not what the page knew before: an edit begins with the newest version.
  if (data === undefined || !isFetchedAfterMount)
    return (
      <Page title={`Edit ${id}`}>
        {error === null ? (
          <SkeletonRows />
        ) : (
          <ErrorNotice error={error} onRetry={() => void refetch()} what="The policy cannot be shown" />
        )}
      </Page>
    );
  return <Editing key={id} policy={data} />;
}

/** Keeps the version that the edit began with: a newer one that arrives meanwhile is a conflict, and is shown as one. */
function Editing({ policy }: { readonly policy: PolicyBody }): ReactNode {
  const [before] = useState(policy);
  return <PolicyEditor before={before} initial={renderPolicyYaml(before.document)} />;
}
