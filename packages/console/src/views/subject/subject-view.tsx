import type { SubjectBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type SubjectName, subjects } from "../../api/subjects.ts";
import { Badge } from "../../ui/badge.tsx";
import { buttonClass } from "../../ui/button.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Page } from "../../ui/page.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { TimeRangePicker } from "../../ui/time-range-picker.tsx";
import { CountersCard } from "./counters-card.tsx";
import { DenialsCard } from "./denials-card.tsx";
import { SubjectActions } from "./subject-actions.tsx";
import { SubjectHistory } from "./subject-history.tsx";
import { SubjectSettings } from "./subject-settings.tsx";

const route = getRouteApi("/shell/subjects/$kind/$value");
/** Counters move: the page follows them while it is looked at. */
const refreshMs = 3_000;

export const subjectKey = ({ dimension, value }: SubjectName) => ["subject", dimension, value] as const;

/** Who is this, how much is left, and why was it denied? */
export default function SubjectView(): ReactNode {
  const { kind: dimension, value } = route.useParams();
  const { range = "24h" } = route.useSearch();
  const navigate = route.useNavigate();
  const name = { dimension, value };
  const { data, error, refetch } = useQuery({
    queryKey: subjectKey(name),
    queryFn: ({ signal }) => subjects.get(name, signal),
    refetchInterval: refreshMs,
  });
  return (
    <Page
      about={data !== undefined && <Standing subject={data} />}
      actions={
        <>
          <Link className={buttonClass()} search={{ request: `${dimension}=${value}` }} to="/why">
            Why…
          </Link>
          {data !== undefined && <SubjectActions subject={data} />}
        </>
      }
      heading={
        <>
          <span className="font-normal text-ink-faint">{dimension}</span>
          <span className="break-all">{value}</span>
          {data?.tier !== undefined && <Badge tone="accent">tier {data.tier}</Badge>}
          {data?.block !== undefined && <Badge tone="denied">blocked</Badge>}
        </>
      }
      title={`${dimension} ${value}`}
    >
      {error !== null && (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The subject cannot be shown" />
      )}
      {data === undefined && error === null && <SkeletonRows />}
      {data !== undefined && (
        <>
          <CountersCard subject={data} />
          <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
            <SubjectHistory
              name={name}
              picker={
                <TimeRangePicker
                  onChange={(next) =>
                    void navigate({ search: { range: next === "24h" ? undefined : next }, replace: true })
                  }
                  value={range}
                />
              }
              range={range}
            />
            <SubjectSettings subject={data} />
          </div>
          <DenialsCard name={name} />
        </>
      )}
    </Page>
  );
}

function Standing({ subject }: { readonly subject: SubjectBody }): ReactNode {
  if (subject.block !== undefined)
    return (
      <>
        Everything is denied: {subject.block.author} blocked it, “{subject.block.reason}”. It ends{" "}
        <RelativeTime ms={subject.block.until_ms} />.
      </>
    );
  if (subject.effective.length === 0) return "No policy counts by this dimension.";
  if (subject.version === 0) return "Nothing is stored about it: the limits are those of the policies.";
  return "Its tier and limits are below, with where each comes from.";
}
