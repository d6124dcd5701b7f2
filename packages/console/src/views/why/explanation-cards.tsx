import type { ExplanationBody } from "@sluice/protocol/http";
import type { ReactNode } from "react";
import { formatCount } from "../../format/numbers.ts";
import { reasonWords } from "../../format/reasons.ts";
import { formatDuration } from "../../format/times.ts";
import { renderWindowBody } from "../../format/windows.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { classNames } from "../../ui/class-names.ts";
import { Icon } from "../../ui/icon.tsx";
import { Meter } from "../../ui/meter.tsx";
import { PolicyLink } from "../../ui/policy-link.tsx";
import { SubjectLink } from "../../ui/subject-link.tsx";
import { readNearMisses, readWindows, type WindowRoom } from "./read-explanation.ts";

/** The answer in words, then the windows with their arithmetic, then what nearly decided otherwise. */
export function ExplanationCards({ explanation }: { readonly explanation: ExplanationBody }): ReactNode {
  const windows = readWindows(explanation);
  const near = readNearMisses(explanation);
  const applied = explanation.policies.filter(({ applies }) => applies);
  return (
    <>
      <Verdict explanation={explanation} />
      <Card aside={`${formatCount(windows.length)} in order of the room they have`} title="Windows">
        {windows.length === 0 && <p className="text-sm text-ink-faint">No limit applies to this request.</p>}
        <ul className="flex flex-col gap-4">
          {windows.map((room) => (
            <WindowItem
              dimension={findDimension(explanation, room.limit.subject)}
              key={`${room.limit.counter} ${renderWindowBody(room.window.window)}`}
              room={room}
            />
          ))}
        </ul>
      </Card>
      <div className="grid gap-4 lg:grid-cols-2">
        <Card title="Policies that apply">
          <PolicyReasons empty="No policy applies, and there is no default." policies={applied} />
        </Card>
        <Card title="Near misses">
          {near.windows.map(({ limit, window }) => (
            <p className="mb-2 text-sm" key={`${limit.counter} ${renderWindowBody(window.window)}`}>
              <PolicyLink id={limit.policy} /> lets it pass with {formatCount(window.remaining - limit.cost)} left of{" "}
              {renderWindowBody(window.window)}.
            </p>
          ))}
          <PolicyReasons
            empty={near.windows.length === 0 ? "Nothing else would have decided about this request." : undefined}
            policies={near.policies}
          />
        </Card>
      </div>
    </>
  );
}

function Verdict({ explanation }: { readonly explanation: ExplanationBody }): ReactNode {
  const { decision } = explanation;
  const { allowed } = decision;
  return (
    <section
      aria-label="Decision"
      className={classNames(
        "flex gap-4 rounded-lg border px-5 py-4",
        allowed ? "border-allowed/40 bg-allowed-soft" : "border-denied/40 bg-denied-soft",
      )}
    >
      <span className={classNames("mt-0.5", allowed ? "text-allowed" : "text-denied")}>
        <Icon name={allowed ? "check" : "denied"} size={26} />
      </span>
      <div className="min-w-0">
        <p className="text-lg font-semibold">{allowed ? "Allowed" : "Denied"}</p>
        <p className="text-sm text-ink-soft">
          {decision.policy !== undefined && (
            <>
              <PolicyLink id={decision.policy} />
              {decision.scope !== undefined && ` / ${decision.scope}`}
              {": "}
            </>
          )}
          {reasonWords(decision.reason)}.
        </p>
        <p className="mt-1 text-sm text-ink-soft">
          {decision.remaining !== undefined &&
            `${formatCount(decision.remaining)} of ${formatCount(decision.limit ?? 0)} left. `}
          {decision.retry_after_ms !== undefined &&
            `The same request passes in ${formatDuration(decision.retry_after_ms)}, if no other arrives. `}
          {decision.degraded !== undefined && `The counters were unavailable: ${decision.degraded}. `}
          Nothing was charged.
        </p>
      </div>
    </section>
  );
}

/** The one dimension of the request that has this value. */
function findDimension({ request }: ExplanationBody, subject: string): string | undefined {
  return Object.entries(request.dimensions ?? {}).find(([, value]) => value === subject)?.[0];
}

function WindowItem({
  room,
  dimension,
}: {
  readonly room: WindowRoom;
  readonly dimension: string | undefined;
}): ReactNode {
  const { limit, window, capacity, used, fits, binding } = room;
  return (
    <li className={classNames("flex flex-col gap-1.5", binding && "-mx-3 rounded-md bg-sunken px-3 py-2.5")}>
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm">
        <span className="font-medium">
          <PolicyLink id={limit.policy} /> / {limit.scope}
        </span>
        <span className="font-mono text-xs text-ink-faint">{renderWindowBody(window.window)}</span>
        {binding && <Badge tone={fits ? "accent" : "denied"}>decides</Badge>}
        {!fits && !binding && <Badge tone="denied">no room</Badge>}
        {limit.shadow && <Badge>shadow</Badge>}
        {limit.tier !== undefined && <Badge>tier {limit.tier}</Badge>}
        <span className="ml-auto text-xs text-ink-faint">
          {formatCount(window.remaining)} of {formatCount(capacity)} left
          {window.reset_after_ms > 0 && `, full again in ${formatDuration(window.reset_after_ms)}`}
        </span>
      </div>
      <Meter
        label={`${limit.policy} ${renderWindowBody(window.window)} used`}
        share={used}
        tone={fits ? "allowed" : "denied"}
      />
      <ol className="font-mono text-xs text-ink-soft">
        {window.arithmetic.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
      <p className="text-xs text-ink-faint">
        {limit.subject === "" ? (
          "One counter for all callers"
        ) : (
          <>
            Counter of{" "}
            {dimension === undefined ? limit.subject : <SubjectLink dimension={dimension} value={limit.subject} />}
          </>
        )}
        {limit.missing.length > 0 && `, shared by all requests without ${limit.missing.join(", ")}`}
        {`. Cost ${limit.cost}, counted ${limit.counted}.`}
      </p>
    </li>
  );
}

function PolicyReasons({
  policies,
  empty,
}: {
  readonly policies: ExplanationBody["policies"];
  readonly empty?: string | undefined;
}): ReactNode {
  if (policies.length === 0) return empty === undefined ? null : <p className="text-sm text-ink-faint">{empty}</p>;
  return (
    <ul className="flex flex-col gap-1.5 text-sm">
      {policies.map(({ policy, why }) => (
        <li key={policy}>
          <PolicyLink id={policy} />: <span className="text-ink-soft">{why}</span>
        </li>
      ))}
    </ul>
  );
}
