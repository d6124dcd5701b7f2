import { SluiceError } from "sluice";

/** The result of reading a text. */
export type SettingReading<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "wrong"; readonly message: string };

export function right<T>(value: T): SettingReading<T> {
  return { kind: "value", value };
}

export function wrong<T>(text: string, expected: string): SettingReading<T> {
  return { kind: "wrong", message: `is ${JSON.stringify(text)}; it should be ${expected}` };
}

export function readWhole(text: string, least: number, most: number): SettingReading<number> {
  const value = /^\d[\d_]*$/.test(text) ? Number(text.replaceAll("_", "")) : Number.NaN;
  return value >= least && value <= most ? right(value) : wrong(text, `a whole number from ${least} to ${most}`);
}

/** Whole or with decimals. */
export function readNumber(text: string, least: number, most: number): SettingReading<number> {
  const value = /^\d[\d_]*(\.\d+)?$/.test(text) ? Number(text.replaceAll("_", "")) : Number.NaN;
  return value >= least && value <= most ? right(value) : wrong(text, `a number from ${least} to ${most}`);
}

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function readDuration(text: string, leastMs: number, mostMs: number, expected: string): SettingReading<number> {
  const [, amount, unit = "s"] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = Number(amount) * unitMs[unit as keyof typeof unitMs];
  return ms >= leastMs && ms <= mostMs ? right(ms) : wrong(text, expected);
}

/** The address stays out of the message: it may contain a password. */
export function readAddress<T>(parse: () => T): SettingReading<T> {
  try {
    return right(parse());
  } catch (error) {
    if (error instanceof SluiceError && error.problems[0] !== undefined)
      return { kind: "wrong", message: error.problems[0].message };
    throw error;
  }
}

/** It may contain a password, and is not repeated. */
export function readDatabase(text: string): SettingReading<string> {
  return /^(postgres(ql)?:\/\/|sqlite:)./.test(text)
    ? right(text)
    : { kind: "wrong", message: "should be postgres://user@host/database, or sqlite:PATH" };
}

export function readSwitch(text: string): SettingReading<boolean> {
  if (text === "true" || text === "1") return right(true);
  if (text === "false" || text === "0") return right(false);
  return wrong(text, "true or false");
}

export function readWord<Word extends string>(text: string, words: readonly Word[]): SettingReading<Word> {
  const word = words.find((one) => one === text.toLowerCase());
  return word === undefined ? wrong(text, `one of ${words.join(", ")}`) : right(word);
}

/** Undefined for `off`. */
export function readPort(text: string): SettingReading<number | undefined> {
  return text.toLowerCase() === "off" ? right(undefined) : readWhole(text, 0, 65_535);
}

export function readList(text: string): SettingReading<readonly string[]> {
  const names = text.split(",").map((name) => name.trim());
  return names.includes("") ? wrong(text, "names separated by commas") : right(names);
}

const mostWorkers = 512;

/** `auto` is 0 here: one per core, which the daemon counts. */
export function readWorkers(text: string): SettingReading<number> {
  if (text.toLowerCase() === "auto") return right(0);
  const reading = readWhole(text, 1, mostWorkers);
  return reading.kind === "value" ? reading : wrong(text, `auto, or a whole number from 1 to ${mostWorkers}`);
}

export function readShare(text: string): SettingReading<number> {
  const value = /^(?:\d+(?:\.\d+)?|\.\d+)$/.test(text) ? Number(text) : Number.NaN;
  return value >= 0 && value <= 1 ? right(value) : wrong(text, "a number from 0 to 1");
}

export function readUrl(text: string): SettingReading<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const web = url?.protocol === "http:" || url?.protocol === "https:";
  return web ? right(text) : { kind: "wrong", message: "should be a URL such as http://127.0.0.1:4318" };
}

const headerPair = /^([A-Za-z0-9!#$%&'*+.^_`|~-]{1,128})\s*=\s*(.*)$/s;

/**
 * `api-key=secret,x-tenant=t`, values percent-encoded, as in OTEL_EXPORTER_OTLP_HEADERS. A wrong value is not repeated:
 * it is a secret.
 */
export function readHeaders(text: string): SettingReading<Readonly<Record<string, string>>> {
  const pairs = text.split(",").map((pair) => headerPair.exec(pair.trim()));
  const headers = pairs.map((pair) => [pair?.[1]?.toLowerCase() ?? "", decodeHeader(pair?.[2] ?? "")] as const);
  if (headers.some(([name, value]) => name === "" || value === undefined))
    return { kind: "wrong", message: "should be header=value pairs separated by commas, values percent-encoded" };
  return right(Object.fromEntries(headers) as Record<string, string>);
}

/** Undefined if a header may not contain it. */
function decodeHeader(text: string): string | undefined {
  try {
    const value = decodeURIComponent(text);
    return /^[\x20-\x7e]*$/.test(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const dimensionHeader = /^([A-Za-z_][\w.-]{0,127})=([A-Za-z0-9!#$%&'*+.^_`|~-]{1,128})$/;

/** `user=x-user-id,tenant=x-tenant`. Header names become lower case. */
export function readDimensionHeaders(text: string): SettingReading<Readonly<Record<string, string>>> {
  const pairs = text.split(",").map((pair) => dimensionHeader.exec(pair.trim()));
  if (pairs.includes(null)) return wrong(text, "dimension=header pairs separated by commas, such as user=x-user-id");
  return right(Object.fromEntries(pairs.map((pair) => [pair![1]!, pair![2]!.toLowerCase()])));
}
