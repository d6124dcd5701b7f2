export { type Daemon, type DaemonOptions, startDaemon } from "./boot/daemon.ts";
export { createLogger, type Logger, type LoggerOptions } from "./observe/telemetry/logger.ts";
export { parseSettings, SettingError, type SettingsReading } from "./settings/parse-settings.ts";
export type { Settings } from "./settings/settings.ts";
export { version } from "./version.ts";
