import {
  readDuration,
  readNumber,
  readPort,
  readSwitch,
  readWhole,
  readWord,
  right,
  type SettingReading,
  wrong,
} from "./setting-readers.ts";

/** One setting: its name in the environment and on the command line, and how its text is read. */
export interface SettingEntry<T> {
  readonly env: string;
  /** Undefined for what has no place on a command line, which every user of the machine can read. */
  readonly flag: string | undefined;
  /** The value's placeholder in `--help`; undefined for a switch. */
  readonly value: string | undefined;
  readonly help: string;
  readonly fallback: T;
  /** The fallback as it would be written, if that differs from the value. */
  readonly fallbackText?: string;
  readonly read: (text: string) => SettingReading<T>;
}

type Flag = string | undefined;

/** The path of a file, as written. Undefined if there is none. */
export function path(flag: Flag, env: string, help: string): SettingEntry<string | undefined> {
  return { flag, env, value: "<path>", help, fallback: undefined, read: (text) => right(text) };
}

/** A port; `off` is undefined. */
export function port(flag: Flag, env: string, help: string, fallback?: number): SettingEntry<number | undefined> {
  const off = fallback === undefined ? { fallbackText: "off" } : {};
  return { flag, env, value: "<number>", help, fallback, ...off, read: readPort };
}

export interface TextForm {
  readonly value: string;
  /** What may be written, and how a refusal describes it. Absent: anything. */
  readonly pattern?: RegExp;
  readonly expected?: string;
}

/** A text. Undefined if it is not given. */
export function text(flag: Flag, env: string, help: string, form: TextForm): SettingEntry<string | undefined> {
  return { ...textOr("", flag, env, help, form), fallback: undefined };
}

/** The same with a fallback. */
export function textOr(fallback: string, flag: Flag, env: string, help: string, form: TextForm): SettingEntry<string> {
  const { value, pattern = /^/, expected = "" } = form;
  const read = (given: string): SettingReading<string> => (pattern.test(given) ? right(given) : wrong(given, expected));
  return { flag, env, value, help, fallback, read };
}

/** One of a few words. */
export function word<Word extends string>(
  flag: Flag,
  env: string,
  help: string,
  words: readonly Word[],
  fallback: Word,
): SettingEntry<Word> {
  return { flag, env, value: `<${words.join("|")}>`, help, fallback, read: (given) => readWord(given, words) };
}

/** A switch that is off until it is given. */
export function flag(name: string, env: string, help: string): SettingEntry<boolean> {
  return { flag: name, env, value: undefined, help, fallback: false, read: readSwitch };
}

export interface Bounds {
  readonly from: number;
  readonly to: number;
}

/** A whole number. */
export function whole(
  flag: Flag,
  env: string,
  help: string,
  { from, to, fallback }: Bounds & { readonly fallback: number },
): SettingEntry<number> {
  return { flag, env, value: "<number>", help, fallback, read: (given) => readWhole(given, from, to) };
}

/** A whole number. Undefined if it is not given. */
export function wholeIfGiven(
  flag: Flag,
  env: string,
  help: string,
  { from, to }: Bounds,
): SettingEntry<number | undefined> {
  return { ...whole(flag, env, help, { from, to, fallback: from }), fallback: undefined };
}

/** A number, whole or with decimals. */
export function decimal(
  flag: Flag,
  env: string,
  help: string,
  { from, to, fallback }: Bounds & { readonly fallback: number },
): SettingEntry<number> {
  return { flag, env, value: "<number>", help, fallback, read: (given) => readNumber(given, from, to) };
}

export interface DurationForm {
  /** Bounds and fallback as written: `500ms`, `1h`. If `from` is `0s`, a bare 0 is accepted as well. */
  readonly from: string;
  readonly to: string;
  readonly fallback: string;
  /** Absent: the fallback. */
  readonly example?: string;
}

/** A duration, in milliseconds. */
export function duration(flag: Flag, env: string, help: string, form: DurationForm): SettingEntry<number> {
  const { from, to, fallback, example = fallback } = form;
  const expected = `a duration from ${from} to ${to}, such as ${example}`;
  const [leastMs, mostMs] = [durationMs(from), durationMs(to)];
  const read = (given: string): SettingReading<number> =>
    readDuration(leastMs === 0 && given === "0" ? "0s" : given, leastMs, mostMs, expected);
  return { flag, env, value: "<duration>", help, fallback: durationMs(fallback), fallbackText: fallback, read };
}

/** A duration, in milliseconds. Undefined if it is not given, which has the same effect as the fallback shown. */
export function durationIfGiven(
  flag: Flag,
  env: string,
  help: string,
  form: DurationForm,
): SettingEntry<number | undefined> {
  return { ...duration(flag, env, help, form), fallback: undefined };
}

function durationMs(written: string): number {
  const reading = readDuration(written, 0, Number.POSITIVE_INFINITY, "a duration");
  if (reading.kind === "wrong") throw new Error(reading.message);
  return reading.value;
}
