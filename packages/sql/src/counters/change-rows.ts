import type { ResolvedLimit } from "sluice/store";
import { rowId, windowName } from "./counter-row.ts";
import type { RowsInTurn } from "./rows-in-turn.ts";
import { chargeTo, creditTo } from "./window-state.ts";

/** Charges unconditionally, or credits a cost below 0. */
export function chargeRows(rows: RowsInTurn, limits: readonly ResolvedLimit[]): void {
  for (const asked of limits) {
    const row = rows.row(rowId(asked));
    for (const window of asked.windows) {
      if (!window.charges) continue;
      const name = windowName(asked.limit, window);
      const state = row.find(name);
      if (asked.cost > 0) row.set(name, chargeTo(window, state, asked.cost, rows.nowMs));
      else if (state !== undefined) row.set(name, creditTo(window, state, -asked.cost, rows.nowMs));
    }
  }
}

export function blockRows(rows: RowsInTurn, limits: readonly ResolvedLimit[], forMs: number): void {
  for (const asked of limits) if (asked.limit.blockable) rows.row(rowId(asked)).block(forMs);
}

export function resetRows(rows: RowsInTurn, limits: readonly ResolvedLimit[]): void {
  for (const asked of limits) rows.row(rowId(asked)).reset();
}
