import type { CompiledWindow, ResolvedLimit } from "sluice/store";
import { isLeasable, leaseAllowance } from "sluice/store";
import type { RedisArgument } from "../connect/redis-connection.ts";
import { identityCode, type KeyNames } from "../place/key-names.ts";
import { blockKey, type Call, findValueShape } from "./encode-call.ts";
import { KeyList } from "./key-list.ts";
import type { Question } from "./question.ts";
import { findCode, findShape } from "./window-code.ts";

const askBytes = 51;
const limitBytes = 12;
const windowBytes = 72;
const nothingSettled = { epoch: 0, spent: 0, kept: 0, returned: 0 };

/** `lease`: see its header. `serverNowMs` is the server's time as far as we know it. */
export function encodeLeases(
  questions: readonly Question[],
  names: KeyNames,
  deadlineMs: number,
  serverNowMs: number,
): Call {
  const keys = new KeyList();
  const args: RedisArgument[] = [String(deadlineMs)];
  const asks = Buffer.allocUnsafe(questions.reduce((sum, { limits }) => sum + countBytes(limits), 0));
  args.push(asks);
  let at = 0;
  for (const { limits, ask } of questions) {
    const { want = 0, holdMs = 1, settled = nothingSettled } = ask ?? {};
    asks.writeUInt16LE(limits.length, at);
    asks[at + 2] = limits.every(isLeasable) ? 1 : 0;
    writeDoubles(asks, at + 3, [want, holdMs, settled.epoch, settled.spent, settled.kept, settled.returned]);
    at += askBytes;
    for (const resolved of limits) {
      const { limit, subject, windows } = resolved;
      asks.writeUInt16LE(windows.length, at);
      asks.writeUInt16LE(keys.add(ledgerKey(names, limit, subject)), at + 2);
      asks.writeDoubleLE(leaseAllowance(resolved), at + 4);
      at += limitBytes;
      for (const window of windows) {
        writeWindow(asks, at, resolved, window, keys, names, settled.returned > 0, serverNowMs);
        // Never leased, but reported.
        if (window.kind === "distinct")
          writeDoubles(asks, at + 40, findValueShape(resolved, window, keys, names, args));
        at += windowBytes;
      }
    }
  }
  return { keys: keys.names, args };
}

/** The key of a limit's ledger: what is granted and unspent. It shares the slot of the limit's counters. */
export function ledgerKey(names: KeyNames, limit: ResolvedLimit["limit"], subject: string): string {
  return names.counter(identityCode(`${limit.identity}|leases`), subject);
}

function countBytes(limits: readonly ResolvedLimit[]): number {
  return limits.reduce((sum, { windows }) => sum + limitBytes + windowBytes * windows.length, askBytes);
}

function writeWindow(
  asks: Buffer,
  at: number,
  { limit, subject }: ResolvedLimit,
  window: CompiledWindow,
  keys: KeyList,
  names: KeyNames,
  marked: boolean,
  serverNowMs: number,
): void {
  const code = findCode(window);
  asks[at] = code.kind;
  asks[at + 1] = window.charges ? 1 : 0;
  asks.writeUInt16LE(keys.add(names.counter(code.code, subject)), at + 2);
  asks.writeUInt16LE(limit.blockable ? keys.add(blockKey(names, limit, subject)) : 0, at + 4);
  asks.writeUInt16LE(marked ? keys.add(names.mark(code.code, subject)) : 0, at + 6);
  const [a, b, c, life] = findShape(window, code, window.perMs, serverNowMs);
  const most = Math.floor(window.capacity);
  writeDoubles(asks, at + 8, [window.source.limit, most, code.capacity, a, b, c, limit.blockForMs, life]);
}

function writeDoubles(to: Buffer, at: number, numbers: readonly number[]): void {
  for (let i = 0; i < numbers.length; i++) to.writeDoubleLE(numbers[i]!, at + 8 * i);
}
