import { printable } from "sluice/internal";
import type { TerminalOutput } from "./terminal.ts";

/** One line that tells how far something is: written over in a terminal, else written anew when it changes. */
export interface ProgressLine {
  /** `what` is the part of it that is worth a line of its own, where lines are not written over. Absent: all of it. */
  show(text: string, what?: string): void;
  /** Leaves what was shown last. */
  end(): void;
}

export function createProgressLine(output: TerminalOutput): ProgressLine {
  let last: string | undefined;
  const over = output.isTTY === true;
  return {
    show(text, what = text): void {
      const key = over ? text : what;
      if (key === last) return;
      last = key;
      const width = output.columns ?? 80;
      const shown = printable(text);
      output.write(over ? `\r\u001b[2K${[...shown].slice(0, width - 1).join("")}` : `${shown}\n`);
    },
    end(): void {
      if (over && last !== undefined) output.write("\n");
    },
  };
}

/** `[######----] 60%`; `share` from 0 to 1. */
export function renderBar(share: number, width: number = 20): string {
  const full = Math.floor(Math.min(1, Math.max(0, share)) * width);
  return `[${"#".repeat(full)}${"-".repeat(width - full)}]`;
}
