import { totalmem } from "node:os";

const mebibyte = 1024 * 1024;
const mostHeapBytes = 1024 * mebibyte;
const mostCounterBytes = 256 * mebibyte;
/** With less than this the server runs no simulation. */
export const leastRoomBytes: number = 256 * mebibyte;

export interface SimulationMemory {
  readonly heapMb: number;
  /** For each of two sets of counters, which are no part of the heap. */
  readonly counterBytes: number;
}

/** The memory that this process may still take. A container's bound counts, because its kernel ends the whole process. */
export function findRoomBytes(): number {
  const constrained = process.constrainedMemory();
  const isConstrained = constrained > 0 && constrained < totalmem();
  return isConstrained ? constrained - process.memoryUsage.rss() : process.availableMemory();
}

/** What a simulation may take: half of the room, because decisions go on and their counters grow. */
export function planSimulationMemory(roomBytes: number): SimulationMemory | undefined {
  if (roomBytes < leastRoomBytes) return undefined;
  const budget = roomBytes / 2;
  return {
    heapMb: Math.floor(Math.min(mostHeapBytes, (budget * 5) / 8) / mebibyte),
    counterBytes: Math.floor(Math.min(mostCounterBytes, (budget * 3) / 16)),
  };
}
