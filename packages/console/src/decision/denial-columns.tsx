import type { DenialBody } from "@sluice/protocol/admin";
import { formatCount } from "../format/numbers.ts";
import { reasonWords } from "../format/reasons.ts";
import { Badge } from "../ui/badge.tsx";
import type { TableColumn } from "../ui/data-table.tsx";
import { PolicyLink } from "../ui/policy-link.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { SubjectLink } from "../ui/subject-link.tsx";

/** Dimensions that say what is asked, and not who asks. */
const requestDimensions: ReadonlySet<string> = new Set(["endpoint", "method"]);

/** Who was denied: the values that the limit counts by, else those of all dimensions that name a caller. */
export function whoOf({
  dimensions,
  by,
}: Pick<DenialBody, "dimensions" | "by">): readonly (readonly [string, string])[] {
  const counted = by.flatMap((name) => (dimensions[name] === undefined ? [] : [[name, dimensions[name]] as const]));
  return counted.length > 0 ? counted : Object.entries(dimensions).filter(([name]) => !requestDimensions.has(name));
}

export function requestOf({ dimensions }: Pick<DenialBody, "dimensions">): string {
  return [dimensions.method, dimensions.endpoint].filter(Boolean).join(" ");
}

export const denialKey = ({ at_ms, node, policy, limit, dimensions, reason }: DenialBody): string =>
  JSON.stringify([at_ms, node, policy, limit, dimensions, reason]);

export const denialColumns: readonly TableColumn<DenialBody>[] = [
  {
    id: "at",
    title: "When",
    width: "6.5rem",
    cell: ({ at_ms }) => <RelativeTime ms={at_ms} />,
    sortBy: ({ at_ms }) => at_ms,
  },
  {
    id: "subject",
    title: "Subject",
    cell: (denial) => (
      <span className="flex items-center gap-1.5">
        {whoOf(denial).map(([name, value]) => (
          <span className="truncate" key={name}>
            <span className="text-xs text-ink-faint">{name} </span>
            <SubjectLink dimension={name} value={value} />
          </span>
        ))}
        {denial.mixed && <Badge title="Stands for denials of several subjects; the newest is shown">and others</Badge>}
      </span>
    ),
  },
  { id: "request", title: "Request", cell: (denial) => <span className="font-mono text-xs">{requestOf(denial)}</span> },
  {
    id: "policy",
    title: "Policy",
    cell: ({ policy, limit, shadow }) => (
      <span className="flex items-center gap-1.5">
        <PolicyLink id={policy} />
        <span className="truncate text-xs text-ink-faint">{limit}</span>
        {shadow && <Badge title="Not carried out: the policy is in shadow mode">shadow</Badge>}
      </span>
    ),
    sortBy: ({ policy }) => policy,
  },
  {
    id: "why",
    title: "Why",
    cell: ({ reason, window, degraded }) => <span title={degraded}>{reasonWords(reason, window)}</span>,
  },
  {
    id: "denials",
    title: "Denials",
    width: "6rem",
    right: true,
    cell: ({ denials }) => formatCount(denials),
    sortBy: ({ denials }) => denials,
  },
];
