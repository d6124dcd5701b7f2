import { createLogger, parseSettings, startDaemon } from "@sluice/server";

/**
 * A server like any other, but for rollouts, whose time passes `speed` times as fast since `sinceMs`. What is decided, counted and
 * judged is the same; each node tells and looks accordingly more often.
 */
const [sinceMs = 0, speed = 1] = process.argv.slice(2).map(Number);

const reading = parseSettings(process.env);
if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
const { settings } = reading;
const log = createLogger({ level: "info", format: "json", stdout: process.stdout, stderr: process.stderr });
const daemon = await startDaemon({
  settings,
  log,
  rolloutTime: { nowMs: () => Math.floor(sinceMs + (Date.now() - sinceMs) * speed), everyMs: 50 },
});
log.info("server.listening", { ...daemon.addresses });
