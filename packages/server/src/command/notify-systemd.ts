import { execFile } from "node:child_process";
import type { Logger } from "../observe/telemetry/logger.ts";
import type { Settings } from "../settings/settings.ts";

/** Reports the life of this process to systemd (`Type=notify`). */
export interface Notifier {
  /** It serves. From here on it also reports that it is alive, if the unit has `WatchdogSec=`. */
  ready(status: string): void;
  /** It was asked to stop. */
  stopping(): void;
}

export type NotifyEnvironment = Readonly<
  Partial<Record<"NOTIFY_SOCKET" | "WATCHDOG_USEC" | "WATCHDOG_PID" | "PATH", string>>
>;

const silent: Notifier = { ready() {}, stopping() {} };

/**
 * Reports with systemd's own `systemd-notify`, because Node has no datagrams over unix sockets. The unit needs
 * `NotifyAccess=all`, as these come from a child process. A report that fails is logged, and changes nothing else.
 */
export function createNotifier(
  { notify }: Pick<Settings, "notify">,
  env: NotifyEnvironment,
  log: Pick<Logger, "warn">,
): Notifier {
  if (!notify) return silent;
  if (!env.NOTIFY_SOCKET) {
    log.warn("server.notify_failed", { reason: "NOTIFY_SOCKET is not set; only systemd sets it, for Type=notify" });
    return silent;
  }
  return new SystemdNotifier(env, log);
}

/** systemd forgives one lost report per period. */
const reportsPerPeriod = 2;
const reportWithinMs = 5_000;

class SystemdNotifier implements Notifier {
  readonly #env: NotifyEnvironment;
  readonly #log: Pick<Logger, "warn">;
  /** One report after another, so that they arrive in order. */
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;
  #failed = false;

  constructor(env: NotifyEnvironment, log: Pick<Logger, "warn">) {
    this.#env = env;
    this.#log = log;
  }

  ready(status: string): void {
    this.#report("READY=1", `STATUS=${status}`);
    const periodMs = watchdogPeriodMs(this.#env);
    if (periodMs === undefined) return;
    // From the event loop that also decides: one that hangs stops reporting, and systemd restarts the service.
    setInterval(() => {
      if (this.#waiting === 0) this.#report("WATCHDOG=1");
    }, periodMs / reportsPerPeriod).unref();
  }

  stopping(): void {
    this.#report("STOPPING=1", "STATUS=Finishing what is in flight");
  }

  #report(...fields: readonly string[]): void {
    this.#waiting += 1;
    this.#last = this.#last.then(async () => {
      const reason = await send(fields, this.#env);
      this.#waiting -= 1;
      if (reason !== undefined && !this.#failed) this.#log.warn("server.notify_failed", { reason });
      this.#failed = reason !== undefined;
    });
  }
}

/** The watchdog's period, if it is meant for this process. */
function watchdogPeriodMs({ WATCHDOG_USEC: period, WATCHDOG_PID: pid }: NotifyEnvironment): number | undefined {
  if (pid !== undefined && pid !== String(process.pid)) return undefined;
  return period !== undefined && /^[1-9]\d{0,15}$/.test(period) ? Number(period) / 1_000 : undefined;
}

/** Undefined once it was sent; else why not. */
function send(fields: readonly string[], { NOTIFY_SOCKET, PATH }: NotifyEnvironment): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { env: { NOTIFY_SOCKET, PATH }, timeout: reportWithinMs };
    execFile("systemd-notify", fields, options, (error, _stdout, stderr) => {
      if (error === null) resolve(undefined);
      else if (error.code === "ENOENT") resolve("systemd-notify is not installed; use Type=exec without --notify");
      else resolve(stderr.trim() || error.message);
    });
  });
}
