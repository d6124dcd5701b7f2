/** `0.42 %` */
export function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}

/** `1.5 s`, `5 min` */
export function seconds(ms: number): string {
  if (!Number.isFinite(ms)) return "never";
  if (Math.abs(ms) >= 120_000 && ms % 60_000 === 0) return `${ms / 60_000} min`;
  return `${Number((ms / 1000).toFixed(Math.abs(ms) < 10_000 ? 2 : 1))} s`;
}
