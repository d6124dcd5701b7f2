import type { RolloutBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { nodesQuery } from "../../api/queries.ts";
import { rollouts } from "../../api/rollouts.ts";
import { formatDuration } from "../../format/times.ts";
import { Card } from "../../ui/card.tsx";
import { classNames } from "../../ui/class-names.ts";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Icon } from "../../ui/icon.tsx";
import { NodeTable } from "../../ui/node-table.tsx";
import { Page } from "../../ui/page.tsx";
import { PolicyLink } from "../../ui/policy-link.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { ComparisonCard } from "./comparison-card.tsx";
import { RolloutActions } from "./rollout-actions.tsx";
import { isUnderway, RolloutState, waitWords } from "./rollout-words.tsx";

const route = getRouteApi("/shell/rollouts/$id");

/** Where a new version stands, what it waits for, and how it compares with the old one. */
export default function RolloutView(): ReactNode {
  const { id } = route.useParams();
  const { data, error, refetch } = useQuery({
    queryKey: ["rollout", id],
    queryFn: ({ signal }) => rollouts.get(id, signal),
    refetchInterval: 2_000,
  });
  const nodes = useQuery(nodesQuery);
  return (
    <Page
      about={data !== undefined && <About rollout={data} />}
      actions={data !== undefined && isUnderway(data) && <RolloutActions rollout={data} />}
      heading={
        data !== undefined && (
          <>
            <PolicyLink id={data.policy} />
            <span className="font-normal text-ink-faint">
              version {data.from_version} → {data.to_version}
            </span>
            <RolloutState rollout={data} />
          </>
        )
      }
      title={data === undefined ? "Rollout" : `Rollout of ${data.policy}`}
    >
      {error !== null && (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The rollout cannot be shown" />
      )}
      {data === undefined && error === null && <SkeletonRows />}
      {data !== undefined && (
        <>
          <Steps rollout={data} />
          <ComparisonCard rollout={data} />
          <Card flush title="Nodes">
            {nodes.data !== undefined && <NodeTable nodes={nodes.data} />}
          </Card>
        </>
      )}
    </Page>
  );
}

function About({ rollout }: { readonly rollout: RolloutBody }): ReactNode {
  return (
    <>
      By {rollout.author}, <RelativeTime ms={rollout.created_ms} />, in order of {rollout.by}.{" "}
      {isUnderway(rollout) ? waitWords(rollout) : rollout.reason !== "" && `It ended: ${rollout.reason}`}
    </>
  );
}

function Steps({ rollout }: { readonly rollout: RolloutBody }): ReactNode {
  const { steps, step, state, percent } = rollout;
  return (
    <Card aside={`${percent} % of subjects have the new version`} title="Steps">
      <ol className="flex flex-wrap gap-2">
        {rollout.observe_for_ms > 0 && (
          <Step
            at={step < 0 && isUnderway(rollout) ? "now" : "done"}
            title="Observe"
            what={formatDuration(rollout.observe_for_ms)}
          />
        )}
        {steps.map(({ percent: share, hold_ms: holdMs }, index) => {
          const at =
            state === "done" || index < step ? "done" : index === step && isUnderway(rollout) ? "now" : "later";
          const isStop = state === "rolled_back" && index === step;
          return (
            <Step
              at={isStop ? "stopped" : at}
              key={share}
              title={`${share} %`}
              what={holdMs === 0 ? "until an operator goes on" : formatDuration(holdMs)}
            />
          );
        })}
      </ol>
    </Card>
  );
}

interface StepProps {
  readonly at: "done" | "now" | "later" | "stopped";
  readonly title: string;
  readonly what: string;
}

const stepLooks: Readonly<Record<StepProps["at"], string>> = {
  done: "border-line bg-sunken text-ink-soft",
  now: "border-accent bg-accent-soft",
  later: "border-line border-dashed text-ink-faint",
  stopped: "border-denied bg-denied-soft",
};
const stepWords: Readonly<Record<StepProps["at"], string>> = {
  done: "done",
  now: "now",
  later: "to come",
  stopped: "rolled back here",
};

function Step({ at, title, what }: StepProps): ReactNode {
  return (
    <li
      aria-current={at === "now" ? "step" : undefined}
      className={classNames("flex min-w-36 flex-col gap-0.5 rounded-md border px-3 py-2", stepLooks[at])}
    >
      <span className="flex items-center gap-1.5 font-semibold">
        {title}
        {at === "done" && <Icon name="check" size={14} />}
        {at === "stopped" && <Icon name="undo" size={14} />}
      </span>
      <span className="text-xs">
        {what}, {stepWords[at]}
      </span>
    </li>
  );
}
