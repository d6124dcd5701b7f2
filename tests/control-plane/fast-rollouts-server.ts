import { createLogger, parseSettings, startDaemon } from "@sluice/server";

/**
 * A server whose rollouts pass time `speed` times as fast since `sinceMs`. Decisions, counts and judgements are the
 * same; each node reports and looks more often accordingly.
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
