import type { EffectiveLimitBody, SubjectBody } from "@sluice/protocol/admin";
import type { ReactNode } from "react";
import { formatCount } from "../../format/numbers.ts";
import { formatDuration, formatMoment } from "../../format/times.ts";
import { renderWindowBody } from "../../format/windows.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { Meter } from "../../ui/meter.tsx";
import { PolicyLink } from "../../ui/policy-link.tsx";

type Usage = NonNullable<EffectiveLimitBody["usage"]>[number];

/** Every limit that applies, and how each of its windows stands. */
export function CountersCard({ subject }: { readonly subject: SubjectBody }): ReactNode {
  return (
    <Card aside="as of now" flush title="Counters">
      {subject.effective.length === 0 ? (
        <EmptyState icon="policies" title={`No policy counts by ${subject.dimension}`}>
          A limit with <code className="font-mono text-xs">by: [{subject.dimension}]</code> would be listed here, with
          what is left of it.
        </EmptyState>
      ) : (
        <table aria-label="Counters" className="w-full text-sm">
          <thead>
            <tr className="text-left text-xs font-medium text-ink-faint">
              {["Policy", "Window", "From", "Used", "Left", "Full again in"].map((title, at) => (
                <th
                  className={at > 3 ? "h-8 px-4 text-right font-medium" : "h-8 px-4 font-medium"}
                  key={title}
                  scope="col"
                >
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{subject.effective.map((limit) => windowRows(limit))}</tbody>
        </table>
      )}
    </Card>
  );
}

function windowRows(limit: EffectiveLimitBody): readonly ReactNode[] {
  const key = `${limit.policy} ${limit.limit}`;
  const windows = limit.usage ?? limit.windows.map((window) => ({ window }));
  return windows.map((one, at) => (
    <tr className="border-t border-line" key={`${key} ${renderWindowBody(one.window)}`}>
      <td className="px-4 py-2">
        {at === 0 && (
          <span className="flex flex-wrap items-center gap-1.5">
            <PolicyLink id={limit.policy} />
            <span className="text-xs text-ink-faint">{limit.limit}</span>
            {limit.mode === "shadow" && <Badge>shadow</Badge>}
          </span>
        )}
      </td>
      <td className="px-4 py-2 font-mono text-xs">{renderWindowBody(one.window)}</td>
      <td className="px-4 py-2">{at === 0 && <Source source={limit.source} />}</td>
      {"used" in one ? (
        <UsageCells label={`${key} ${renderWindowBody(one.window)}`} usage={one} />
      ) : (
        <NoUsage by={limit.by} />
      )}
    </tr>
  ));
}

function UsageCells({ usage, label }: { readonly usage: Usage; readonly label: string }): ReactNode {
  const { used, remaining, reset_after_ms: resetMs } = usage;
  const share = used + remaining <= 0 ? 1 : used / (used + remaining);
  return (
    <>
      <td className="px-4 py-2">
        <span className="flex items-center gap-3">
          <span className="w-32">
            <Meter
              label={`${label} used`}
              share={share}
              tone={share >= 1 ? "denied" : share >= 0.8 ? "warning" : "allowed"}
            />
          </span>
          {formatCount(used)}
        </span>
      </td>
      <td className={`px-4 py-2 text-right ${remaining < 1 ? "font-semibold text-denied" : ""}`}>
        {formatCount(Math.floor(remaining))}
      </td>
      <td className="px-4 py-2 text-right">
        {resetMs === undefined ? "never" : resetMs === 0 ? "full" : formatDuration(resetMs)}
      </td>
    </>
  );
}

function NoUsage({ by }: { readonly by: readonly string[] }): ReactNode {
  return (
    <td className="px-4 py-2 text-xs text-ink-faint" colSpan={3}>
      Also counts by {by.join(", ")}: explain a request to see its counter.
    </td>
  );
}

function Source({ source }: { readonly source: EffectiveLimitBody["source"] }): ReactNode {
  switch (source.kind) {
    case "tier":
      return <Badge tone="accent">tier {source.tier}</Badge>;
    case "override":
      return (
        <Badge title={`Until ${formatMoment(source.until_ms)}`} tone="warning">
          override
        </Badge>
      );
    case "custom":
      return <Badge tone="accent">custom</Badge>;
    case "policy":
      return <span className="text-ink-faint">policy</span>;
  }
}
