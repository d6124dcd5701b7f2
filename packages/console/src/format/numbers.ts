const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** `12,345`. */
export function formatCount(count: number): string {
  return whole.format(count);
}

/** `12.3K`: at most three digits, for places with little room. */
export function formatCompact(count: number): string {
  return Math.abs(count) < 1_000 ? formatAmount(count) : compact.format(count);
}

/** `5,210`, `96.1` or `0.13`: three digits of a rate say enough. */
export function formatRate(perSecond: number): string {
  if (perSecond >= 100) return whole.format(perSecond);
  return formatAmount(perSecond);
}

/** `99.9 %`. What is not nothing is never shown as nothing, nor what is not all as all. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const percent = share * 100;
  if (percent > 0 && percent < 0.01) return "< 0.01 %";
  if (percent < 100 && percent > 99.99) return "> 99.99 %";
  const digits = percent >= 99 && percent < 100 ? 2 : percent >= 10 ? 1 : 2;
  return `${trimZeros(percent.toFixed(digits))} %`;
}

function formatAmount(amount: number): string {
  if (amount === 0) return "0";
  const digits = Math.abs(amount) >= 100 ? 0 : Math.abs(amount) >= 10 ? 1 : 2;
  return trimZeros(amount.toFixed(digits));
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** `1 policy`, `2 policies`. */
export function formatNoun(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
