import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { admin } from "../../api/admin.ts";
import { explain } from "../../api/explain.ts";
import { parsePairs, parseRequest, renderPairs } from "../../decision/parse-request.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { TextArea } from "../../ui/field.tsx";
import { Page } from "../../ui/page.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { ExplanationCards } from "./explanation-cards.tsx";
import { dimensionsOf } from "./known-dimensions.ts";

const route = getRouteApi("/shell/why");
const example = "tenant=acme method=GET endpoint=/v1/search";

/** Why a request would be allowed or denied now. Nothing is charged. */
export default function WhyView(): ReactNode {
  const { request: asked } = route.useSearch();
  const navigate = route.useNavigate();
  const request = asked === undefined ? undefined : parsePairs(asked)?.request;
  const policies = useQuery({ queryKey: ["policies", "all"], queryFn: ({ signal }) => admin.policies(signal) });
  const explained = useQuery({
    queryKey: ["why", asked],
    queryFn: ({ signal }) => explain(request!, signal),
    enabled: request !== undefined,
    staleTime: 0,
  });
  const ask = (text: string) => {
    if (text === asked) void explained.refetch();
    else void navigate({ search: { request: text } });
  };
  return (
    <Page
      about="How the server that answers would decide a request now. It charges nothing and counts nothing."
      title="Why"
    >
      <div className="grid items-start gap-4 xl:grid-cols-[26rem_minmax(0,1fr)]">
        <RequestForm
          asked={asked}
          // Without the policies, headers that are dimensions would be left out.
          busy={explained.isFetching || policies.isPending}
          dimensions={dimensionsOf(policies.data ?? [])}
          onAsk={ask}
        />
        <div className="flex min-w-0 flex-col gap-4">
          {explained.data !== undefined && <ExplanationCards explanation={explained.data} />}
          {explained.isLoading && <SkeletonRows />}
          {explained.error !== null && (
            <ErrorNotice
              error={explained.error}
              onRetry={() => void explained.refetch()}
              what="The request cannot be explained"
            />
          )}
          {request === undefined && <NothingAsked onAsk={ask} />}
        </div>
      </div>
    </Page>
  );
}

function NothingAsked({ onAsk }: { readonly onAsk: (text: string) => void }): ReactNode {
  return (
    <Card title="Explanation">
      <EmptyState
        actions={<Button onClick={() => onAsk(example)}>Try an example</Button>}
        icon="why"
        title="Paste a request to see how it is decided"
      >
        A curl command, the head of an HTTP request, a check as JSON, or pairs such as{" "}
        <code className="font-mono text-xs">{example}</code>. From a denial or the live tail you arrive here with the
        request filled in.
      </EmptyState>
    </Card>
  );
}

interface RequestFormProps {
  readonly asked: string | undefined;
  readonly busy: boolean;
  readonly dimensions: readonly string[];
  readonly onAsk: (text: string) => void;
}

function RequestForm({ asked, busy, dimensions, onAsk }: RequestFormProps): ReactNode {
  const [text, setText] = useState(asked ?? "");
  const [tried, setTried] = useState(false);
  useEffect(() => setText(asked ?? ""), [asked]);
  const parsed = parseRequest(text, dimensions);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (parsed !== undefined) onAsk(renderPairs(parsed.request));
  };
  const entries = Object.entries(parsed?.request.dimensions ?? {});
  return (
    <Card title="Request">
      <form className="flex flex-col gap-3" onSubmit={submit}>
        <TextArea
          className="font-mono text-xs"
          error={
            tried && parsed === undefined
              ? "This is no request: write pairs such as tenant=acme, or paste curl, HTTP or JSON."
              : undefined
          }
          hideLabel
          hint="curl, HTTP, JSON, or name=value pairs. Credentials are left out."
          label="Request"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event)}
          rows={6}
          value={text}
        />
        {entries.length > 0 && (
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-1 text-sm">
            {entries.map(([name, value]) => (
              <div className="contents" key={name}>
                <dt className="text-ink-faint">{name}</dt>
                <dd className="truncate font-mono text-xs leading-5">{value}</dd>
              </div>
            ))}
            <dt className="text-ink-faint">cost</dt>
            <dd className="font-mono text-xs leading-5">{parsed?.request.cost ?? "as the policy says"}</dd>
          </dl>
        )}
        {parsed?.notes.map((note) => (
          <p className="text-xs text-warning" key={note}>
            {note}
          </p>
        ))}
        <Button busy={busy} className="self-start" icon="why" kind="primary" type="submit">
          Explain
        </Button>
      </form>
    </Card>
  );
}
