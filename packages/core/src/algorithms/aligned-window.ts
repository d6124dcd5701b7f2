/**
 * End of the epoch-aligned window that holds `nowMs`, as an instant on the clock whose origin is at `originMs` epoch
 * milliseconds (a whole number). Window bounds are whole milliseconds, so whole numbers decide and nothing rounds.
 */
export function alignedEndMs(perMs: number, nowMs: number, originMs: number): number {
  return (Math.floor((originMs + Math.floor(nowMs)) / perMs) + 1) * perMs - originMs;
}
