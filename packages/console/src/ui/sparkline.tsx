import type { ReactNode } from "react";

type Stacked = Pick<SparklineProps, "allowed" | "denied">;

interface SparklineProps {
  /** Oldest first. Two series are stacked: denied on top of allowed. */
  readonly allowed: readonly number[];
  readonly denied: readonly number[];
  readonly width?: number;
  readonly height?: number;
  /** What it shows, in words. */
  readonly label: string;
}

/** The last period is not over yet, and would look like a fall. */
export function withoutLast({ allowed, denied }: Stacked): Stacked {
  return { allowed: allowed.slice(0, -1), denied: denied.slice(0, -1) };
}

/** A small picture of the course of things. Its numbers are somewhere else; its label has them in words. */
export function Sparkline({ allowed, denied, width = 120, height = 24, label }: SparklineProps): ReactNode {
  const most = Math.max(1, ...allowed.map((value, at) => value + (denied[at] ?? 0)));
  const count = Math.max(allowed.length, 2);
  const x = (at: number) => ((at / (count - 1)) * width).toFixed(1);
  const y = (value: number) => (height - 1 - (value / most) * (height - 2)).toFixed(1);
  const total = allowed.map((value, at) => value + (denied[at] ?? 0));
  const outline = (values: readonly number[]) =>
    values.map((value, at) => `${at === 0 ? "M" : "L"}${x(at)} ${y(value)}`).join("");
  const area = (values: readonly number[]) => `${outline(values)}L${x(values.length - 1)} ${height}L0 ${height}Z`;
  if (total.every((value) => value === 0))
    return (
      <svg
        aria-label={label}
        className="shrink-0"
        height={height}
        role="img"
        viewBox={`0 0 ${width} ${height}`}
        width={width}
      >
        <path d={`M0 ${height - 1}H${width}`} stroke="var(--line)" />
      </svg>
    );
  return (
    <svg
      aria-label={label}
      className="shrink-0"
      height={height}
      role="img"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
    >
      <path d={area(total)} fill="var(--denied)" />
      <path d={area(allowed)} fill="var(--surface)" />
      <path d={area(allowed)} fill="var(--allowed)" opacity={0.35} />
      <path d={outline(allowed)} fill="none" stroke="var(--allowed)" strokeWidth={1.4} />
    </svg>
  );
}
