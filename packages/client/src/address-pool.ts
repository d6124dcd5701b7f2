import type { QuestionKind } from "./exchange.ts";
import type { GuardedAddress } from "./guarded-address.ts";

/** The servers of a line, and the choice of the next one. */
export class AddressPool {
  readonly #addresses: readonly GuardedAddress[];
  /** Where the next choice starts, so that equal servers take turns. */
  #turn = 0;

  constructor(addresses: readonly GuardedAddress[]) {
    this.#addresses = addresses;
  }

  /** Questions that were sent and are not answered. */
  get unanswered(): number {
    return this.#addresses.reduce((sum, { unanswered }) => sum + unanswered, 0);
  }

  /** Connects to servers that are not connected yet. Returns whether one is ready, or connecting. */
  approach(): boolean {
    let hopeful = false;
    for (const address of this.#addresses) hopeful = address.approach() || hopeful;
    return hopeful;
  }

  /** The address with room and the fewest unanswered questions, in turn; `asked` only if there is no other. */
  choose(kind: QuestionKind, asked: GuardedAddress | undefined): GuardedAddress | undefined {
    const { length } = this.#addresses;
    let best: GuardedAddress | undefined;
    for (let i = 0; i < length; i++) {
      const address = this.#addresses[(this.#turn + i) % length]!;
      if (!address.hasRoom(kind)) continue;
      if (best === undefined || best === asked || (address !== asked && address.unanswered < best.unanswered))
        best = address;
    }
    if (best !== undefined) this.#turn = (this.#addresses.indexOf(best) + 1) % length;
    return best;
  }

  /** Whether another address is ready. */
  hasOther(asked: GuardedAddress | undefined): boolean {
    return this.#addresses.some((address) => address !== asked && address.ready);
  }
}
