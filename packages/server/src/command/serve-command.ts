import type { HangUp, Signals } from "../boot/signals.ts";
import {
  parseSettings,
  renderSettingProblems,
  SettingError,
  type SettingsReading,
} from "../settings/parse-settings.ts";
import type { SettingEntry } from "../settings/setting-entry.ts";
import { type Settings, settingSections, settingsTable } from "../settings/settings.ts";
import { CommandFailure } from "./command-failure.ts";
import { type ServeTerminal, serve } from "./serve.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** An option of `sluice serve`. */
export interface ServeOption {
  /** As it is written: `--port <port>`. */
  readonly form: string;
  readonly help: string;
  /** The section of `serve --help` that it is in. */
  readonly section: string;
}

/** What `sluice serve` takes, from the table of settings. */
export interface ServeDescription {
  /** By the name of the setting. */
  readonly options: Readonly<Record<string, ServeOption>>;
  /** Flags that a variable's name suggests, with the right ones: `--http-port` for `--port`. */
  readonly misnamedFlags: readonly (readonly [string, string])[];
  /** Settings that have a variable and no flag, for the help. */
  readonly variables: string;
}

export function describeServe(): ServeDescription {
  return { options: findOptions(), misnamedFlags: findMisnamedFlags(), variables: renderVariables() };
}

function findOptions(): Readonly<Record<string, ServeOption>> {
  return Object.fromEntries(
    settingSections.flatMap(({ heading: section, names }) =>
      names.flatMap((name) => {
        const entry: SettingEntry<unknown> = settingsTable[name];
        if (entry.flag === undefined) return [];
        const form = entry.value === undefined ? entry.flag : `${entry.flag} ${entry.value}`;
        const help = `${entry.help} [${entry.env}${renderFallback(entry)}]`;
        return [[name, { form, help, section }] as const];
      }),
    ),
  );
}

function findMisnamedFlags(): ServeDescription["misnamedFlags"] {
  return settingEntries().flatMap(([, { env, flag }]) => {
    if (flag === undefined || !env.startsWith("SLUICE_")) return [];
    const name = `--${env.slice("SLUICE_".length).toLowerCase().replaceAll("_", "-")}`;
    return name === flag ? [] : [[name, flag] as const];
  });
}

function renderVariables(): string {
  return settingEntries()
    .filter(([, { flag }]) => flag === undefined)
    .map(([, { env, help }]) => `  ${env.padEnd(32)}${help}`)
    .join("\n");
}

function renderFallback({ value, fallback, fallbackText }: SettingEntry<unknown>): string {
  const text = fallbackText ?? fallback;
  return value === undefined || text === undefined ? "" : `, default ${text}`;
}

export function settingEntries(): readonly (readonly [keyof Settings, SettingEntry<unknown>])[] {
  return Object.entries(settingsTable) as [keyof Settings, SettingEntry<unknown>][];
}

/** What `sluice serve` was called with. */
export interface ServeRequest {
  readonly env: Environment;
  /** By the name of the setting. */
  readonly flags: Readonly<Record<string, string>>;
  readonly terminal: ServeTerminal;
  readonly signals: Signals;
  readonly hangUp: HangUp | undefined;
}

/** Serves until a signal stops it. Throws a `CommandFailure` or a `SluiceError` if it cannot start. */
export async function runServe({ env, flags, terminal, signals, hangUp }: ServeRequest): Promise<0 | 2> {
  const { settings, warnings } = demandSettings(parseSettings(env, flags));
  try {
    return await serve({ settings, warnings, terminal, signals, hangUp, env });
  } catch (error) {
    throw error instanceof SettingError ? new CommandFailure(error.message) : error;
  }
}

/** Throws a `CommandFailure` with everything that is wrong. */
export function demandSettings(reading: SettingsReading): Extract<SettingsReading, { kind: "settings" }> {
  if (reading.kind === "problems") throw new CommandFailure(renderSettingProblems(reading.problems));
  return reading;
}
