export { type Daemon, type DaemonOptions, startDaemon } from "./daemon.ts";
export { parseSettings, SettingError, type Settings, type SettingsReading } from "./settings.ts";
export { createLogger, type Logger, type LoggerOptions } from "./telemetry/logger.ts";
export { version } from "./version.ts";
