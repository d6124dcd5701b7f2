import type { ReactNode } from "react";
import { Select } from "./select.tsx";

const minute = 60_000;
const durations = [
  [5 * minute, "5 minutes"],
  [15 * minute, "15 minutes"],
  [60 * minute, "1 hour"],
  [6 * 60 * minute, "6 hours"],
  [24 * 60 * minute, "1 day"],
  [7 * 24 * 60 * minute, "7 days"],
] as const;

interface DurationSelectProps {
  readonly label: string;
  readonly value: number;
  readonly onChange: (ms: number) => void;
  /** Absent: 7 days. */
  readonly mostMs?: number;
}

/** How long something lasts: it ends automatically. */
export function DurationSelect({
  label,
  value,
  onChange,
  mostMs = Number.POSITIVE_INFINITY,
}: DurationSelectProps): ReactNode {
  const options = durations.filter(([ms]) => ms <= mostMs).map(([ms, text]) => ({ value: String(ms), label: text }));
  return <Select label={label} onChange={(ms) => onChange(Number(ms))} options={options} value={String(value)} />;
}
