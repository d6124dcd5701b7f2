import type { Signals } from "../early-signals.ts";
import type { Terminal } from "./terminal.ts";

/** A terminal's whole screen, drawn again and again until the reader leaves. */
export interface LiveScreen {
  /** Draws in place of what was there; what does not fit is cut off. */
  draw(text: string): void;
  /** Resolves after so long, when a key is pressed, or when it has ended. */
  wait(ms: number): Promise<void>;
  /** Resolves when `q`, Ctrl-C or Ctrl-D is pressed, the input ends, or a signal says so. */
  readonly ended: Promise<void>;
  readonly isEnded: boolean;
  /** Gives the terminal back as it was. */
  close(): void;
}

/** Another page of the terminal, which keeps what is on this one; no cursor; long lines are cut off. */
const begin = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const end = "\u001b[?7h\u001b[?25h\u001b[?1049l";
const toTop = "\u001b[H";
const clearLine = "\u001b[K";
const clearBelow = "\u001b[J";

const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Ctrl-C and Ctrl-D, which are keys like others while keys are read one by one. */
const stopKeys = new Set(["q", "Q", "\u0003", "\u0004"]);

/** Takes over a terminal. `stdout` must be one; keys are read if `stdin` is one as well. `onKey` receives those that do not end it. */
export function openLiveScreen(
  { stdin, stdout }: Terminal,
  signals: Signals,
  onKey: (key: string) => void,
): LiveScreen {
  let isEnded = false;
  let wake: (() => void) | undefined;
  let finish: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    finish = resolve;
  });

  function stop(): void {
    isEnded = true;
    finish();
    wake?.();
  }

  function hear(chunk: Buffer | string): void {
    for (const key of String(chunk)) {
      if (stopKeys.has(key)) stop();
      else onKey(key);
    }
    wake?.();
  }

  const keys = stdin?.isTTY === true ? stdin : undefined;
  keys?.setRawMode?.(true);
  keys?.on("data", hear);
  keys?.on("end", stop);
  keys?.resume();
  for (const signal of stopSignals) signals.on(signal, stop);
  stdout.write(begin);

  return {
    ended,
    get isEnded(): boolean {
      return isEnded;
    },
    draw(text): void {
      const lines = text.trimEnd().split("\n");
      const shown = lines.slice(0, stdout.rows ?? lines.length);
      stdout.write(`${toTop}${shown.map((line) => line + clearLine).join("\n")}${clearBelow}`);
    },
    wait(ms): Promise<void> {
      if (isEnded) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(() => wake?.(), ms);
        wake = (): void => {
          clearTimeout(timer);
          wake = undefined;
          resolve();
        };
      });
    },
    close(): void {
      for (const signal of stopSignals) signals.off(signal, stop);
      keys?.off("data", hear);
      keys?.off("end", stop);
      keys?.setRawMode?.(false);
      keys?.pause();
      stdout.write(end);
    },
  };
}
