import type { LiveTopic } from "@sluice/protocol/admin";
import { tokenDigest } from "@sluice/protocol/tokens";
import { SluiceError } from "sluice";
import type { AnswerStream } from "../../data-plane/transports/http/exchange.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { WorkerLink } from "../../observe/worker-link.ts";
import type { LiveChanges, SeenChanges } from "./live-changes.ts";
import type { LiveDecisions } from "./live-decisions.ts";
import type { LiveOverview } from "./live-overview.ts";
import { type LiveRequest, OpenStream } from "./open-stream.ts";

export interface LiveStreamsOptions {
  readonly overview: LiveOverview;
  readonly decisions: LiveDecisions;
  readonly changes: LiveChanges;
  readonly log: Logger;
  /** Set if several processes are behind the same ports: streams of one session may be at any of them. */
  readonly worker?: WorkerLink | undefined;
  /** The most streams at a time, and of one token. */
  readonly maxStreams?: number | undefined;
  readonly maxOfToken?: number | undefined;
  /** How often decisions are sent; the overview half as often. */
  readonly everyMs?: number | undefined;
}

const overviewRounds = 2;
const changeRounds = 2;

/**
 * Sends what happens to those who watch, as server-sent events. One timer serves all streams, and runs while there are any; a round
 * ends before the next one begins, so slow readings make fewer events and never more work.
 *
 *     open ──client leaves, session ends, too slow, server stops──► closed
 */
export class LiveStreams {
  readonly #options: LiveStreamsOptions;
  readonly #streams = new Set<OpenStream>();
  #timer: NodeJS.Timeout | undefined;
  #round = 0;
  #isBusy = false;
  #isClosed = false;
  /** Whether the overview has a reading to compare with. */
  #hasBegun = false;
  #seen: SeenChanges | undefined;

  constructor(options: LiveStreamsOptions) {
    this.#options = options;
    options.worker?.answer("session end", async (digest) => {
      this.#endSession(digest);
      return "";
    });
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Throws `overloaded` if there are too many streams, and `not_ready` if the server is stopping. */
  admit({ credential }: LiveRequest): void {
    const { maxStreams = 64, maxOfToken = 8 } = this.#options;
    if (this.#isClosed) throw new SluiceError("not_ready", "this server is stopping; ask again in a moment");
    const own = [...this.#streams].filter(({ request }) => request.credential.token === credential.token).length;
    if (own < maxOfToken && this.#streams.size < maxStreams) return;
    const which = own >= maxOfToken ? `${own} live streams of this token` : `${this.#streams.size} live streams`;
    throw new SluiceError("overloaded", `${which} are open here, which is the most; close another one`);
  }

  /** Sends events until the stream is over. */
  start(request: LiveRequest, stream: AnswerStream): void {
    const watch = request.topics.has("decisions") ? this.#options.decisions.watch(request.filter) : undefined;
    const open = new OpenStream(request, stream, watch);
    this.#streams.add(open);
    stream.onClose(() => {
      watch?.close();
      this.#streams.delete(open);
      if (this.#streams.size === 0) this.#stop();
    });
    open.comment();
    if (request.topics.has("changes") && this.#seen !== undefined)
      open.send("changes", { ...this.#seen.body, changes: [], more: false });
    this.#timer ??= setInterval(() => void this.#run(), this.#options.everyMs ?? 500).unref();
  }

  /** Closes the streams of a session that has ended, of all workers. */
  endSession(token: string): void {
    const digest = tokenDigest(token);
    this.#endSession(digest);
    void this.#options.worker?.askOthers("session end", digest);
  }

  /** Closes all streams, and refuses later ones. */
  close(): void {
    this.#isClosed = true;
    for (const open of this.#streams) open.end("server_stopping");
  }

  #endSession(digest: string): void {
    for (const open of this.#streams) {
      const { by, token } = open.request.credential;
      if (by === "cookie" && tokenDigest(token) === digest) open.end("session_ended");
    }
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#seen = undefined;
    this.#hasBegun = false;
  }

  async #run(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#round += 1;
    try {
      for (const open of this.#streams) open.look();
      await Promise.all([
        this.#round % overviewRounds === 0 && this.#sendOverview(),
        (this.#seen === undefined || this.#round % changeRounds === 0) && this.#sendChanges(),
        ...this.#watching("decisions").map(async (open) => {
          const body = await open.watch?.take();
          if (body !== undefined) open.send("decisions", body);
        }),
      ]);
    } catch (error) {
      this.#options.log.error("live.failed", { err: error });
    } finally {
      this.#isBusy = false;
    }
  }

  #watching(topic: LiveTopic): readonly OpenStream[] {
    return [...this.#streams].filter(({ request }) => request.topics.has(topic));
  }

  async #sendOverview(): Promise<void> {
    const { overview } = this.#options;
    const isWatched = this.#watching("overview").length > 0;
    const hadBegun = this.#hasBegun;
    this.#hasBegun = isWatched;
    if (!isWatched) return;
    if (!hadBegun) return overview.begin();
    const body = await overview.read();
    for (const open of this.#watching("overview")) open.send("overview", body);
  }

  async #sendChanges(): Promise<void> {
    if (this.#watching("changes").length === 0) {
      this.#seen = undefined;
      return;
    }
    const seen = await this.#options.changes.read(this.#seen);
    // If every client left meanwhile, what was read belongs to an earlier time.
    if (seen === undefined || this.#watching("changes").length === 0) return;
    this.#seen = seen;
    for (const open of this.#watching("changes")) open.send("changes", seen.body);
  }
}
