/** `1 234 567`, with narrow spaces that do not break; `0.25` for what is small and not whole. */
export function renderCount(count: number): string {
  const rounded = Math.abs(count) < 10 ? Number(count.toPrecision(3)) : Math.round(count);
  const [whole = "", fraction] = String(rounded).split(".");
  const grouped = whole.replaceAll(/\B(?=(\d{3})+(?!\d))/g, " ");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** `12.3 %`, `0.004 %`; more than none is never shown as none. */
export function renderShare(part: number, whole: number): string {
  if (whole === 0 || part === 0) return "0 %";
  const percent = (100 * part) / whole;
  if (percent < 0.001) return "<0.001 %";
  if (percent >= 99.95) return percent === 100 ? "100 %" : ">99.9 %";
  return `${percent >= 1 ? percent.toFixed(1) : Number(percent.toPrecision(2))} %`;
}

/** `2026-01-31 12:00:00 UTC` */
export function renderInstant(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
