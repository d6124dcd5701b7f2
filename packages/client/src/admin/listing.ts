import type { PageBody } from "@sluice/protocol/admin";

/** Asks for one page: at most `limit` items, after a cursor. */
export type AskPage<Item> = (page: {
  readonly after: string | undefined;
  readonly limit: number;
}) => Promise<PageBody<Item>>;

/** As many as one answer is asked for. The control plane sends at most 1000. */
const pageSize = 500;

/**
 * A list that comes page by page, as it is read: `for await (const policy of admin.policies.list())`. Nothing is asked before the
 * first item is, and leaving the loop asks no further.
 */
export class Listing<Item> implements AsyncIterable<Item> {
  readonly #ask: AskPage<Item>;

  constructor(ask: AskPage<Item>) {
    this.#ask = ask;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const { items } of this.pages()) yield* items;
  }

  /** Page by page. `next` of one is the cursor that goes on after it. */
  async *pages({
    after,
    limit = pageSize,
  }: {
    readonly after?: string;
    readonly limit?: number;
  } = {}): AsyncGenerator<PageBody<Item>, void, undefined> {
    let cursor = after;
    do {
      const page: PageBody<Item> = await this.#ask({ after: cursor, limit });
      yield page;
      cursor = page.next;
    } while (cursor !== undefined);
  }

  /** All of them, or the first `most`. */
  async toArray(most: number = Number.POSITIVE_INFINITY): Promise<readonly Item[]> {
    const all: Item[] = [];
    let after: string | undefined;
    do {
      const { items, next } = await this.#ask({ after, limit: Math.min(pageSize, most - all.length) });
      all.push(...items);
      after = next;
    } while (after !== undefined && all.length < most);
    return all;
  }
}
