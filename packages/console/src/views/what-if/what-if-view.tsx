import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { isUnderway, type SimulationDocument, simulationQuery, whatIf } from "../../api/what-if.ts";
import { formatNoun } from "../../format/numbers.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Page } from "../../ui/page.tsx";
import { SimulationForm } from "./simulation-form.tsx";
import { SimulationResult } from "./simulation-result.tsx";

/** What a change would have done to recorded traffic. */
export default function WhatIfView(): ReactNode {
  const search = useSearch({ from: "/shell/what-if" });
  const navigate = useNavigate({ from: "/what-if" });
  return (
    <Page
      about="What a change would have done to recorded traffic, before you make it. Nothing is changed or charged."
      title="What if"
    >
      <SimulationForm
        key={search.policy ?? ""}
        onStarted={(simulation) => void navigate({ search: (before) => ({ ...before, simulation }) })}
        policy={search.policy}
        recording={search.recording}
        setRecording={(recording) => void navigate({ search: (before) => ({ ...before, recording }), replace: true })}
      />
      {search.simulation === undefined ? (
        <EmptyState icon="simulate" title="Nothing is simulated yet">
          Choose a recording or a log, change a policy, and press Simulate.
        </EmptyState>
      ) : (
        <ShownSimulation id={search.simulation} key={search.simulation} />
      )}
    </Page>
  );
}

/** It is beneath the form, and the reader waits for it. */
const reveal = (element: HTMLElement | null): void => element?.scrollIntoView();

function ShownSimulation({ id }: { readonly id: string }): ReactNode {
  const { data, error, refetch } = useQuery(simulationQuery(id));
  if (error !== null && data === undefined)
    return <ErrorNotice error={error} onRetry={() => void refetch()} what="The simulation cannot be shown" />;
  if (data === undefined) return null;
  if (isUnderway(data)) {
    const percent = Math.floor(data.progress * 100);
    return (
      <Card
        aside={
          <Button
            onClick={() =>
              void whatIf
                .cancel(id)
                .catch(() => undefined)
                .then(() => refetch())
            }
            small
          >
            Cancel
          </Button>
        }
        title={data.state === "waiting" ? "Waiting for another simulation" : "Simulating"}
      >
        <progress aria-label="How much is read" className="h-2 w-full accent-accent" max={1} value={data.progress} />
        <p aria-live="polite" className="mt-1 text-sm text-ink-faint">
          {percent} %, {formatNoun(data.requests, "request")} so far
        </p>
      </Card>
    );
  }
  if (data.state === "cancelled")
    return (
      <EmptyState icon="close" title="The simulation was cancelled">
        Press Simulate to run it again.
      </EmptyState>
    );
  if (data.state === "failed" || data.document === undefined)
    return <ErrorNotice error={new Error(data.error?.message ?? "")} what="The simulation failed" />;
  return (
    <section aria-label="Simulation" className="flex scroll-mt-18 flex-col gap-4" ref={reveal}>
      <SimulationResult document={data.document as SimulationDocument} />
    </section>
  );
}
