import { ipSubject } from "sluice";

/** How many connections each address has. IPv6 is counted by networks of 64 bits, in which a client may take any address. */
export class AddressCount {
  readonly #most: number;
  readonly #counts = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether an address has as many as it may. A connection without one, such as over a unix socket, never has. */
  isFull(address: string | undefined): boolean {
    const network = findNetwork(address);
    return network !== undefined && (this.#counts.get(network) ?? 0) >= this.#most;
  }

  /** Counts a connection until the returned function is called. */
  enter(address: string | undefined): () => void {
    const network = findNetwork(address);
    if (network === undefined) return () => {};
    const counts = this.#counts;
    counts.set(network, (counts.get(network) ?? 0) + 1);
    return () => {
      const left = counts.get(network)! - 1;
      if (left === 0) counts.delete(network);
      else counts.set(network, left);
    };
  }
}

function findNetwork(address: string | undefined): string | undefined {
  return address === undefined ? undefined : ipSubject(address);
}
